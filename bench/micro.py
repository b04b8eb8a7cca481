"""Runs pure functions with Google Benchmark: each figure is the time of one call, its spread that of repetitions. If a function times its calls
one by one, the slowest of a hundred is also reported and judged."""
import json
import subprocess
from collections import defaultdict

from figures import Bench, ratio

GOALS = {"MetricsPage/2240": 1000, "MetricsPageOfHolders/200": 5000, "PreferredAllocation": 1000, "PreferredParts": 5000, "CdiSpecification": 20000,
         "ScrapeOverHttp/plain": 1000, "ScrapeOverHttp/gzip/": 1000, "DecisionDuringScrapes": 1000,
         "PlanOf8Gpus": 5000, "PlanOf8DevicesAtTheLimit": 50000}  # µs


def measure(programs, smoke: bool) -> Bench:
    bench = Bench("micro", "Single functions")
    options = ["--benchmark_min_time=0.001"] if smoke else ["--benchmark_min_time=0.1", "--benchmark_repetitions=9"]
    done = subprocess.run([programs / "bench-micro", "--benchmark_format=json", *options], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"bench-micro: {done.stderr}")
    times, slowest, labels = defaultdict(list), defaultdict(list), {}
    for run in json.loads(done.stdout)["benchmarks"]:
        if run.get("error_occurred"):
            raise RuntimeError(f"{run['name']}: {run['error_message']}")
        if run["run_type"] == "iteration":
            times[run["run_name"]].append(run.get("p50", run["cpu_time"] / 1000))
            if "p99" in run:
                slowest[run["run_name"]].append(run["p99"])
            page = f"({run['series']:.0f} series, {run['bytes'] / 1024:.0f} KiB, {run['allocations']:.0f} allocations)" if "series" in run else ""
            labels[run["run_name"]] = " ".join([run.get("label", ""), page]).strip()
    for name, values in times.items():
        goal = next((bound for prefix, bound in GOALS.items() if name.startswith(prefix)), None)
        bench.add(f"{name} {labels[name]}".strip(), "µs", values, goal=None if name in slowest else goal)
        if name in slowest:
            bench.add("p99 of the calls", "µs", slowest[name], goal=goal, judged="median", detail=True)
    if "PrometheusCpp/2240" in times:
        bench.add("ratio of prometheus-cpp's page to ours", "x", ratio(times["PrometheusCpp/2240"], times["MetricsPage/2240"]))
    return bench
