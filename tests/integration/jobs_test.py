"""Jobs of a workload manager on dcgm-exporter's series: files in a folder, changed while the agent runs, also by a hostile owner. On simulated
machines; needs no root and no network but the loopback."""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from node import PATIENCE, Node, wait_until  # noqa: E402

POWER = "DCGM_FI_DEV_POWER_USAGE"


class Mapped(Node):
    """A node whose agent reads jobs from the folder `jobs`."""

    def __init__(self, home: Path, programs: Path, machine: str):
        self.jobs = home / "jobs"
        super().__init__(home, programs, machine, listen=f"unix:{home}/pages",
                         config=f"telemetry: {{interval: 100ms, hostLabel: none, jobDirectory: {self.jobs}}}\n")

    def write(self, name: str, text: str | bytes):
        """Replaces a file, as a careful prolog does."""
        beside = self.jobs / ".new"
        beside.write_bytes(text if isinstance(text, bytes) else text.encode())
        beside.rename(self.jobs / name)

    def metrics(self) -> str:
        return subprocess.run(["curl", "-s", "--unix-socket", f"{self.home}/pages", "http://x/metrics"], capture_output=True, check=True,
                              timeout=PATIENCE).stdout.decode()

    def samples(self, family: str = "DCGM_") -> list:
        """The exporter's series with their labels; fails if the page is malformed or a series occurs twice."""
        samples = [sample for one in text_string_to_metric_families(self.metrics()) for sample in one.samples if sample.name.startswith(family)]
        assert len({(sample.name, tuple(sorted(sample.labels.items()))) for sample in samples}) == len(samples), "a series occurs twice"
        return samples

    def shown(self, family: str = POWER) -> dict[str, list[str]]:
        """The jobs of each GPU or instance that has any, by the name of its file."""
        shown: dict[str, list[str]] = {}
        for sample in self.samples(family):
            name = ".".join(filter(None, (sample.labels["gpu"], sample.labels.get("GPU_I_ID"))))
            if "hpc_job" in sample.labels:
                shown.setdefault(name, []).append(sample.labels["hpc_job"])
        return shown

    def await_jobs(self, jobs: dict[str, list[str]]):
        wait_until(lambda: self.shown() == jobs, f"the jobs {jobs}", seen=lambda: (self.shown(), self.log()[-2000:]))


@pytest.fixture
def start(request):
    nodes = []
    with tempfile.TemporaryDirectory(prefix="penstock-jobs-") as folder:
        def started(machine: str = "dgx-h100", jobs: bool = True) -> Mapped:
            node = Mapped(Path(folder), request.config.getoption("--programs").resolve(), machine)
            nodes.append(node)
            if jobs:
                node.jobs.mkdir()
            node.start_agent()
            wait_until(lambda: len(node.samples(POWER)) == 8, "values of each GPU", seen=lambda: node.samples(POWER))  # one is measured after the other
            return node
        yield started
        for node in nodes:
            node.end()


def test_a_gpu_has_its_series_for_each_job_and_the_folder_is_followed(start):
    node = start(jobs=False)
    assert node.shown() == {} and "the directory does not exist yet" in node.log()
    before = len(node.samples(POWER))
    node.jobs.mkdir()
    (node.jobs / "README").write_text("no jobs\n")
    (node.jobs / "0").write_text("17\n18\n17\n")
    node.await_jobs({"0": ["17", "18"]})
    assert len(node.samples(POWER)) == before + 1
    assert len({sample.value for sample in node.samples(POWER) if sample.labels["gpu"] == "0"}) == 1, "each copy has the GPU's value"
    for sample in node.samples():
        assert ("hpc_job" in sample.labels) == (sample.labels["gpu"] == "0"), sample
    assert not any("hpc_job" in sample.labels for sample in node.samples("accelerator_"))

    node.write("3", "19")
    node.await_jobs({"0": ["17", "18"], "3": ["19"]})
    with open(node.jobs / "3", "a") as file:
        file.write("\n20.batch\n")
    node.await_jobs({"0": ["17", "18"], "3": ["19", "20.batch"]})
    (node.jobs / "0").write_text("")
    node.await_jobs({"3": ["19", "20.batch"]})
    assert len(node.samples(POWER)) == before + 1, "a GPU without jobs has its series without the label"
    (node.jobs / "3").unlink()
    node.await_jobs({})

    other = node.home / "other"
    other.mkdir()
    (other / "1").write_text("21\n")
    node.jobs.rename(node.home / "old")
    other.rename(node.jobs)
    node.await_jobs({"1": ["21"]})
    (node.home / "old/1").write_text("22\n")
    node.write("2", "23\n")
    node.await_jobs({"1": ["21"], "2": ["23"]})
    for file in node.jobs.iterdir():
        file.unlink()
    node.jobs.rmdir()
    node.await_jobs({})
    node.jobs.mkdir()
    node.write("4", "24\n")
    node.await_jobs({"4": ["24"]})

    node.config.write_text(node.config.read_text().replace(f"jobDirectory: {node.jobs}", "podUid: false"))
    node.await_jobs({})


def test_an_instance_has_the_jobs_of_its_own_file(start):
    node = start("dgx-h200")
    environment = dict(os.environ, PENSTOCK_SIM_STATE=str(node.root / ".penstock-sim/state"))
    for words in (["-i", "0", "-mig", "1"], ["mig", "-i", "0", "-cgi", "3g.71gb,3g.71gb", "-C"]):
        subprocess.run([node.root / "usr/bin/nvidia-smi", *words], check=True, env=environment, stdout=subprocess.DEVNULL)

    def instances() -> list[str]:
        return sorted(sample.labels["GPU_I_ID"] for sample in node.samples(POWER) if "GPU_I_ID" in sample.labels)

    first, second = wait_until(lambda: len(instances()) == 2 and instances(), "two instances", seen=instances)
    node.write("0", "16\n")
    node.write(f"0.{first}", "17\n18\n")
    node.write("1", "19\n")
    node.write("1.0", "20\n")
    node.await_jobs({f"0.{first}": ["17", "18"], "1": ["19"]})
    links = node.shown("DCGM_FI_DEV_NVLINK_")
    assert set(links.get("0", ["16"])) == {"16"}, "links are the GPU's"
    node.write(f"0.{second}", "21\n")
    (node.jobs / f"0.{first}").unlink()
    node.await_jobs({f"0.{second}": ["21"], "1": ["19"]})


def test_files_of_a_hostile_owner_neither_block_the_agent_nor_show_what_is_not_theirs(start):
    node = start()
    secret = node.home / "secret"
    secret.write_text("password\n")
    os.mkfifo(node.jobs / "0")
    (node.jobs / "1").symlink_to(secret)
    os.link(secret, node.jobs / "2")
    (node.jobs / "3").mkdir()
    with open(node.jobs / "4", "w") as file:
        file.truncate(1 << 40)
    (node.jobs / "5").write_bytes(b'25",gpu="9\n26\\\n' + b"DCGM_FI_DEV_POWER_USAGE{gpu=\"9\"} 1\n" + b"\xff\xfe\n\x01\n\x02\n" + b"\r\n" + b"x" * 300 + b"\n27")
    (node.jobs / "6").write_text("".join(f"{job}\n" for job in range(100)))
    for number in range(300):
        (node.jobs / f"9.{number}").write_text("28\n")
    node.write("7", "29\n")
    node.await_jobs({"5": ['25",gpu="9', "26\\", 'DCGM_FI_DEV_POWER_USAGE{gpu="9"} 1', "??", "?", "27"], "6": [str(job) for job in range(64)], "7": ["29"]})
    assert {sample.labels["gpu"] for sample in node.samples(POWER)} == {str(gpu) for gpu in range(8)}
    assert "password" not in node.metrics() and "password" not in node.log()

    def warnings() -> list[str]:
        return re.findall("file [0-9.]+ [^;\"]*|there are more than[^;\"]*", "\n".join(line for line in node.log().splitlines()
                                                                                      if "some jobs of devices are unknown" in line))

    wait_until(lambda: len(warnings()) >= 8, "the warnings", seen=node.log)
    for round_ in range(3):
        node.write("7", f"{30 + round_}\n")
        wait_until(lambda: node.shown()["7"] == [str(30 + round_)], "the next job", seen=node.shown)  # noqa: B023
    assert len(set(warnings())) == len(warnings()), warnings()
    report = json.loads(node.penstock("status", "-o", "json").stdout)
    assert all(device["health"]["state"] == "healthy" for device in report["devices"])
