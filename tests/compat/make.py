"""make.py PROGRAMS FOLDER: makes frozen state below FOLDER with the given programs: the state that
an agent leaves when it exits while programs continue, and the transcript of a conversation with its
broker. Run it once for each released version, with that version's programs; never change the output."""
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import frozen
from conversation import play
from monitored import Kubelet
from node import Node, wait_until

READ_ONLY_CGROUPS = ("unshare", "--mount", "--propagation", "private", "sh", "-c", """
for at in $(awk '$3 ~ /^cgroup2?$/ {print $2}' /proc/self/mounts); do
  mount -o remount,bind,ro $at || exit 1
done
exec "$@"
""", "sh")
SHARES = """version: v1
sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}
"""
STEPS = [
    {"request": {"op": "version"}},
    {"request": {"op": "status"}},
    {"as": "a", "request": {"op": "run", "gpus": 1, "model": "A100*", "command": "train",
                            "labels": {"experiment": "a"}}},
    {"as": "b", "request": {"op": "run", "devices": ["2"], "share": 4, "wait": "10s",
                            "command": "serve"}},
    {"as": "c", "request": {"op": "run", "gpus": 5, "command": "large"}},
    {"request": {"op": "queue"}},
    {"request": {"op": "ps"}},
    {"request": {"op": "status"}},
    {"request": {"op": "samples"}},
    {"request": {"op": "run", "devices": ["0"], "wait": "0s"}},
    {"request": {"op": "cancel", "ticket": "@TICKET@"}},
    {"read": "c"},
    {"end": "c"},
    {"request": {"op": "cancel", "ticket": "q-999999"}},
    {"request": {"op": "nonsense"}},
    {"request": {"op": "run", "gpus": 0}},
    {"request": {"op": "run", "gpus": 99}},
    {"request": {"op": "run", "gpu": 1}},
    {"request": {"op": "plan"}},
    {"request": {"op": "plan", "name": "shares.yaml", "explain": True, "text": SHARES}},
    {"request": {"op": "plan", "text": "version: v1\nsharings: {}\n", "name": "wrong.yaml"}},
    {"request": {"op": "door", "devices": ["0"], "door": "none"}},
    {"request": {"op": "door", "devices": ["1", frozen.id_of(3)], "door": "none", "dryRun": True}},
    {"request": {"op": "door", "devices": ["1"], "door": "none", "wait": "10s"}},
    {"request": {"op": "door", "devices": ["1"], "door": "default"}},
    {"request": {"op": "usage", "by": ["user", "label:experiment"]}},
    {"request": {"op": "usage", "by": ["nonsense"]}},
    {"request": {"op": "usage", "idle": True}},
    {"end": "a"},
    {"end": "b"},
    {"request": {"op": "ps"}},
    {"request": {"op": "down"}},
]


def new_home() -> Path:
    home = Path(tempfile.mkdtemp(prefix="penstock-frozen-"))
    home.chmod(0o755)
    return home


def new_node(programs: Path, home: Path, **options) -> Node:
    node = Node(home, programs, machine=str(frozen.MACHINE), config=frozen.CONFIG, name="compat",
                **options)
    node.sim("clock", "stop")
    return node


def texts_of(node: Node, pids: dict[str, int]) -> dict[str, str]:
    return frozen.texts_of(node.home, node.programs, pids)


def keep(folder: Path, to: Path, texts: dict[str, str]):
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "lock":
            target = to / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(frozen.freeze(path.read_text(), texts))


def await_samples(node: Node, device: int):
    """Waits until the device was measured for more than two seconds."""
    def measured() -> float:
        said = node.penstock("usage", "-o", "json", "--by", "device").stdout
        return sum(row["measuredSeconds"] for row in json.loads(said)["usage"]["rows"]
                   if row["by"]["device"] == frozen.id_of(device))
    before = measured()
    wait_until(lambda: measured() > before + 2.5, "samples")


def await_text(path: Path, *words: str):
    wait_until(lambda: path.exists() and all(word in path.read_text() for word in words),
               f"{path.name} to be written with {words}")


def make_state(programs: Path, to: Path):
    """Makes leases in control groups and at the kubelet, a manually assigned device, an unhealthy
    device, usage, an engine's journal, and specifications."""
    home = new_home()
    kubelet = Kubelet(home, programs)
    node = new_node(programs, home, kubelet=kubelet.dir)
    try:
        node.start_agent(devices=6)
        for index in range(6):
            node.sim("set", str(index), "utilisation=50", "power=100")
        make_record(node)
        runs = {"A": node.start("--device", 0, "--label", "experiment=a", "--", "sleep", "1000")}
        wait_until(lambda: node.held() == {0}, "the first run to hold its device")
        runs["B"] = node.start("--device", 2, "--share", 4, "--", "sleep", "1000")
        wait_until(lambda: node.held() == {0, 2}, "both runs to hold their devices")
        assert len({frozen.start_of(run.pid) for run in runs.values()}) == 2, "run it once more"
        pod = kubelet.start("ml", "train-0", 2)
        wait_until(lambda: sum(holder["pod"] != "" for holder in node.holders()) == 2,
                   "the agent to know the pod")
        node.penstock("door", "set", "1", "none")
        node.sim("fault", "5", "xid", "48")
        await_text(node.state_dir / "health.json", '"unwell": true')
        await_samples(node, 0)
        node.sim("clock", "advance", "60s")
        await_samples(node, 0)
        await_text(node.state_dir / "ledger.json", *pod,
                   *(f'"pid": {run.pid}' for run in runs.values()))
        first = configure_engine(programs, home)
        report = node.report()
        said = node.penstock("usage", "-o", "json", "--by", "label:experiment").stdout
        node.agent.terminate()  # an orderly exit, so that usage.json is current
        assert node.agent.wait(60) == 0, node.log()
        steady_now = time.monotonic_ns()
        texts = texts_of(node, {name: run.pid for name, run in runs.items()})
        keep(node.state_dir, to / "state", texts)
        keep(node.cdi_dir, to / "cdi", texts)
        keep(home / "engine", to / "engine", texts)
        (to / "engine/daemon.json.first").write_text(first)
        (to / "groups").mkdir()
        leases = {}
        for group in node.groups():
            note = os.getxattr(group, frozen.NOTE).decode()
            (to / "groups" / f"{group.name}.json").write_text(note + "\n")
            leases |= {pid: group.name for pid in (group / "cgroup.procs").read_text().split()}
        keys = ("slot", "device", "kind", "lease", "pod", "namespace", "container", "since")
        facts = {
            "runs": {name: leases[str(run.pid)] for name, run in runs.items()},
            "pod": {"namespace": "ml", "pod": "train-0", "container": "main",
                    "resource": "nvidia.com/gpu", "ids": pod},
            "moved": 1,
            "unwell": {"index": 5, "reason": report["devices"][5]["health"]["reason"]},
            "holders": [{key: holder[key] for key in keys}
                        for device in report["devices"] for holder in device["holders"]],
            "steadyNow": steady_now,
            "usage": json.loads(said)["usage"],
        }
        (to / "facts.json").write_text(frozen.dump(facts))
    finally:
        kubelet.stop()
        node.end()


def make_record(node: Node):
    """Makes the record of a run that has ended."""
    run = node.start("--device", 0, "--label", "experiment=ended", "--", "sleep", "1000")
    wait_until(lambda: node.held() == {0}, "the run to hold its device")
    await_samples(node, 0)
    node.sim("clock", "advance", "30s")
    await_samples(node, 0)
    run.kill()
    run.communicate()
    wait_until(lambda: list(node.state_dir.glob("usage/*.jsonl")), "the record")


def configure_engine(programs: Path, home: Path) -> str:
    """Configures the engine; returns its previous configuration."""
    engine = home / frozen.ENGINE
    engine.parent.mkdir()
    first = '{"features": {"buildkit": true}}\n'
    engine.write_text(first)
    done = frozen.runtime(programs, home, "configure", "--cdi.enabled", "--runtime-path",
                          frozen.RUNTIME)
    assert done.returncode == 0, done.stderr
    return first


def make_visibility(programs: Path, to: Path):
    """Makes a lease without a control group, which is identified only by its processes."""
    node = new_node(programs, new_home())
    try:
        node.start_agent(READ_ONLY_CGROUPS, devices=6)
        run = node.start("--device", 0, "--", "sleep", "1000")
        await_text(node.state_dir / "ledger.json", f'"pid": {run.pid}')
        node.kill_agent()
        to.mkdir()
        text = (node.state_dir / "ledger.json").read_text()
        (to / "ledger.json").write_text(frozen.freeze(text, texts_of(node, {"V": run.pid})))
    finally:
        node.end()


def make_transcript(programs: Path, to: Path):
    node = new_node(programs, new_home())
    try:
        node.start_agent(devices=6)
        transcript = play(node.run_dir, STEPS)
        node.agent.wait(60)
        to.write_text(frozen.freeze(frozen.dump(transcript), texts_of(node, {})))
    finally:
        node.end()


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    frozen.must_be_root()
    programs, to = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    if to.exists():
        raise SystemExit(f"{to} already exists: frozen state is never changed")
    to.mkdir(parents=True)
    make_state(programs, to)
    make_visibility(programs, to / "visibility")
    make_transcript(programs, to / "transcript.json")


if __name__ == "__main__":
    main()
