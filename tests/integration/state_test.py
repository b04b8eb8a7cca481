"""State that an agent saves for the next one: the last applied configuration, leases, usage. Also the behaviour of an agent whose state is
missing or unknown. Needs root, for control groups."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from api_server import ApiServer  # noqa: E402
from monitored import GPU, Kubelet  # noqa: E402
from node import PATIENCE, Node, wait_until  # noqa: E402

NODE, MAP = "/api/v1/nodes/n1", "/api/v1/namespaces/gpu/configmaps/shares"
SHARES = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"
SHARED = 32  # 8 GPUs in 4 shares


@pytest.fixture
def home():
    home = Path(tempfile.mkdtemp(prefix="state-"))
    home.chmod(0o755)
    yield home
    shutil.rmtree(home, ignore_errors=True)


class Clustered:
    """A machine with a kubelet and an agent that is configured by a ConfigMap."""

    def __init__(self, home: Path, programs: Path):
        self.api, self.kubelet = ApiServer(home), Kubelet(home, programs)
        self.api.put(NODE, "Node")
        self.api.put(MAP, "ConfigMap", data={"default": SHARES})
        cluster = f"cluster: {{kubeconfig: {self.api.kubeconfig}, config: {{configMap: shares, namespace: gpu}}}}\n"
        self.node = Node(home, programs, config=cluster, kubelet=self.kubelet.dir, name="n1")

    def start(self):
        """Waits until all devices have been read."""
        self.node.start_agent()

    def configuration(self) -> dict:
        return (self.node.report() or {}).get("configuration", {"origin": "", "notYet": None})

    def condition(self, kind: str) -> dict:
        found = (self.node.report() or {"conditions": []})["conditions"]
        return next((one for one in found if one["type"] == kind), {"status": None, "reason": "", "message": ""})

    def end(self):
        self.kubelet.stop()
        self.node.end()
        if not self.api.http.ended:
            self.api.down()


@pytest.fixture
def clustered(home, request):
    clustered = Clustered(home, request.config.getoption("--programs").resolve())
    yield clustered
    clustered.end()


def kept(node: Node, what: str) -> bool:
    """Whether the configuration is on disk: the agent saves it after applying it."""
    file = node.state_dir / "configuration.json"
    return file.exists() and what in json.loads(file.read_text())


def whole(ids: list[str]) -> list[str]:
    return [one for one in ids if "::" not in one]


def test_the_kubelet_is_told_of_shares_alone_whenever_the_agent_starts_and_whether_or_not_the_cluster_answers(clustered):
    clustered.start()
    clustered.kubelet.healthy(SHARED)
    clustered.kubelet.start("ml", "train")
    assert "key default" in clustered.configuration()["origin"]
    assert not whole(clustered.kubelet.told()), "also the first list has only shares"
    wait_until(lambda: kept(clustered.node, "configMap"), "the configuration to be saved")
    for away in (False, True):
        clustered.node.kill_agent()
        if away:
            clustered.api.down()
        clustered.start()
        clustered.kubelet.healthy(SHARED)
        clustered.kubelet.start("ml", f"more-{away}")
        told = clustered.kubelet.told()
        assert len(told) == SHARED and not whole(told)
    assert "key default" in clustered.configuration()["origin"], "the configuration that was applied last"
    assert "not read since the agent started" in clustered.configuration()["notYet"][0]
    assert clustered.condition("ConfigurationApplied")["status"]
    clustered.api.up()
    wait_until(lambda: clustered.configuration()["notYet"] == [], "the ConfigMap to be read from the API server")
    assert not whole(clustered.kubelet.told())


MEGABYTE = 1_000_000  # an API server accepts about as much
HUGE = {"one value": {"default": "version: " + "y" * MEGABYTE},
        "one key": {"default": SHARES + "k" * 900 + ": 1\n? " + "k" * (MEGABYTE // 2) + "\n: 1\n"},
        "brackets": {"default": "[" * MEGABYTE},
        "unknown keys": {"default": SHARES + "".join(f"key{i}: 1\n" for i in range(MEGABYTE // 12))},
        "problems": {"default": "kind: NodeConfig\n" + "".join(f"key{i}: 1\n" for i in range(MEGABYTE // 12))},
        "many keys": {f"key{i}": "x" for i in range(MEGABYTE // 12)}}


@pytest.mark.parametrize("data", HUGE.values(), ids=HUGE)
def test_a_megabyte_that_is_wrong_is_said_in_few_words_and_changes_nothing(clustered, data):
    clustered.start()
    clustered.kubelet.healthy(SHARED)
    log, written = clustered.node.home / "agent.log", len(clustered.api.writes)
    before = log.stat().st_size
    clustered.api.put(MAP, "ConfigMap", data=data)
    wait_until(lambda: clustered.configuration().get("problem") or clustered.configuration().get("remarks"), "it to be said", seen=clustered.configuration)
    clustered.kubelet.healthy(SHARED)
    assert clustered.condition("ConfigurationApplied")["message"]
    wait_until(lambda: any("nodestates" in path and json.dumps(body).count("ConfigMap gpu/shares") > 1 for _, path, body in clustered.api.writes[written:]),
               "the NodeState to say it")
    assert max(len(json.dumps(body)) for _, _, body in clustered.api.writes[written:]) < 100_000
    assert len(json.dumps(clustered.node.report())) < 300_000
    # Only a real API server refuses to change labels that this one does not store: the log repeats them.
    lines = [line for line in log.read_text()[before:].splitlines() if "contested labels" not in line]
    assert sum(map(len, lines)) < 100_000


def test_without_anything_kept_the_kubelet_is_told_nothing_until_the_cluster_answers(clustered):
    clustered.api.down()
    clustered.start()
    allocator = wait_until(lambda: (allocator := clustered.node.allocator("kubelet"))["state"] == "waiting" and allocator, "the kubelet's allocator to wait")
    assert "ConfigMap gpu/shares has not been read yet" in allocator["reason"] and "or until 20" in allocator["reason"]
    said = clustered.condition("ConfigurationApplied")
    assert not said["status"] and said["reason"] == "Waiting" and said["since"]
    assert clustered.condition("KubeletDoor")["message"] == allocator["reason"]
    assert "ConfigMap gpu/shares has not been read yet" in clustered.node.penstock("status").stdout
    assert clustered.kubelet.told() == []
    clustered.api.up()
    clustered.kubelet.healthy(SHARED)
    assert not whole(clustered.kubelet.told())
    assert clustered.condition("ConfigurationApplied")["status"]


def test_a_file_of_labels_that_is_not_configured_any_more_is_removed_also_if_that_changed_while_no_agent_ran(home, request):
    """NFD would go on publishing it."""
    folder = home / "features.d"
    folder.mkdir()
    node = Node(home, request.config.getoption("--programs").resolve(), config=f"labels: {{featuresFile: {folder}/one}}\n")
    text = node.config.read_text()

    def has(file: str):
        wait_until(lambda: os.listdir(folder) == [file] and "nvidia.com/gpu.count=8" in (folder / file).read_text(), f"the labels to be in {file} alone")
        wait_until(lambda: str(folder / file) in (node.state_dir / "configuration.json").read_text(), "the configuration to be saved")

    try:
        node.start_agent()
        has("one")
        node.config.write_text(text.replace("/one", "/two"))
        has("two")
        node.kill_agent()
        node.config.write_text(text.replace("/one", "/three"))
        node.start_agent()
        has("three")
    finally:
        node.end()


def test_a_nodes_label_that_switches_labels_off_counts_for_their_file_too(clustered):
    file = clustered.node.home / "features"
    clustered.api.put(MAP, "ConfigMap", data={"default": f"apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\nlabels: {{featuresFile: {file}}}\n"})
    clustered.start()
    wait_until(lambda: file.exists() and "nvidia.com/gpu.count=8" in file.read_text(), "the labels")
    for value, there in (("false", False), ("true", True)):
        clustered.api.put(NODE, "Node", metadata={"labels": {"nvidia.com/gpu.deploy.gpu-feature-discovery": value}})
        wait_until(lambda: ("nvidia.com/" in file.read_text()) is there, f"the file to follow {value}")  # noqa: B023


def test_devices_that_were_shared_are_not_offered_whole_however_long_the_cluster_is_away(clustered):
    """No state is saved, but the kubelet's checkpoint lists shares."""
    clustered.start()
    [share] = clustered.kubelet.start("ml", "train")
    clustered.node.kill_agent()
    shutil.rmtree(clustered.node.state_dir)
    clustered.api.down()
    (clustered.kubelet.dir / "device-plugins/kubelet_internal_checkpoint").write_text(
        json.dumps({"Data": {"PodDeviceEntries": [], "RegisteredDevices": {GPU: [share]}}, "Checksum": 1}))
    clustered.kubelet.told()
    clustered.start()
    wait_until(lambda: f"the kubelet's checkpoint lists the share {share}" in clustered.node.allocator("kubelet")["reason"],
               "the agent to report why it still waits")
    assert clustered.kubelet.told() == []
    clustered.api.up()
    clustered.kubelet.healthy(SHARED)
    assert not whole(clustered.kubelet.told())


def test_devices_that_nobody_shared_are_offered_whole_after_a_while(clustered):
    clustered.api.down()
    clustered.start()
    clustered.kubelet.healthy(8)
    assert clustered.condition("ConfigurationApplied")["reason"] == "Waiting", "the condition reports only that the configuration is not read yet"


def test_a_folder_for_mps_changes_nothing_until_a_configuration_shares_by_mps(home, request):
    programs, folder = request.config.getoption("--programs").resolve(), home / "mps"
    folder.mkdir()
    kubelet = Kubelet(home, programs)
    rules = "rules: [{strategy: time-slicing, replicas: 2}]"
    node = Node(home, programs, "a100-40gb-x1", f"sharing: {{mps: {{root: {folder}}}, {rules}}}\n", kubelet=kubelet.dir)
    try:
        for _ in range(2):  # also for the next agent
            node.start_agent(devices=1)
            kubelet.healthy(2)
            assert node.report()["servers"] == [] and not list(folder.iterdir())
            node.kill_agent()
    finally:
        kubelet.stop()
        node.end()


def test_a_configuration_file_that_is_bad_at_start_does_not_end_the_agent(home, request):
    programs = request.config.getoption("--programs").resolve()
    kubelet = Kubelet(home, programs)
    node = Node(home, programs, config="labels: {timestamp: false}\nsharing: {rules: [{strategy: time-slicing, replicas: 4}]}\n", kubelet=kubelet.dir)
    good = node.config.read_text()
    try:
        node.start_agent()
        kubelet.healthy(SHARED)
        kubelet.told()
        wait_until(lambda: kept(node, "file"), "the configuration to be saved")
        node.kill_agent()
        node.config.write_text(good.replace("labels:", "lables:"))
        node.start_agent()
        kubelet.healthy(SHARED)
        assert not whole(kubelet.told())
        configuration = node.report()["configuration"]
        assert "as last applied" in configuration["origin"] and 'did you mean "labels"' in configuration["problem"]
        assert "its last applied content is in force" in node.log()
        node.config.write_text(good)
        wait_until(lambda: node.report()["configuration"]["problem"] == "", "the corrected file to be applied")
        node.kill_agent()
        node.config.unlink()
        node.start_agent()
        kubelet.healthy(SHARED)
        assert "No such file" in node.report()["configuration"]["problem"]
    finally:
        kubelet.stop()
        node.end()


@pytest.fixture
def node(home, request):
    node = Node(home, request.config.getoption("--programs").resolve())
    yield node
    node.end()


def test_state_of_a_newer_version_keeps_no_agent_from_starting(node):
    node.start_agent()
    program = node.hold(1)
    [lease] = node.holders()
    node.kill_agent()
    for file in ("ledger.json", "ledger-limits.json", "doors.json", "changes.json", "health.json", "usage.json", "configuration.json", "queue.json"):
        (node.state_dir / file).write_text(json.dumps({"version": 2, "of a shape": "nobody here knows"}))
    node.start_agent()
    assert [one["lease"] for one in node.holders()] == [lease["lease"]], "the control group records the lease"
    assert len(list(node.state_dir.glob("*.newer"))) == 8
    assert program.poll() is None
    report = json.loads(node.penstock("usage", "-o", "json").stdout)["usage"]
    assert "problem" not in report


def test_a_kernel_that_boots_next_is_reported_and_followed(node):
    def install(release: str):
        (node.root / "lib/modules" / release).mkdir(parents=True)
        (node.root / "boot").mkdir(exist_ok=True)
        (node.root / "boot" / f"vmlinuz-{release}").touch()

    def reported() -> str | None:
        return (node.report() or {"status": {}})["status"].get("nextKernel")

    install("6.99.0-1-generic")
    node.start_agent()
    wait_until(lambda: reported() == "6.99.0-1-generic", "the kernel that was there before the agent")
    install("6.99.0-10-generic")
    wait_until(lambda: reported() == "6.99.0-10-generic", "a kernel that is installed", seconds=30)
    (node.root / "vmlinuz").symlink_to(f"boot/vmlinuz-{os.uname().release}")
    (node.root / "boot" / f"vmlinuz-{os.uname().release}").touch()
    wait_until(lambda: node.report() and reported() is None, "the running kernel, to which the link leads", seconds=30)


def test_specifications_that_are_switched_off_go_once_whoever_held_devices_has_ended(node):
    """The agent waits half a minute, until a kubelet would have said which pods hold devices. Without one it leaves what another device plugin wrote."""
    own, others = node.cdi_dir / "penstock-nvidia.com-gpu.json", node.cdi_dir / "k8s.device-plugin.nvidia.com-gpu.json"
    node.cdi_dir.mkdir()
    others.write_text("{}")
    node.start_agent()
    wait_until(own.exists, "the specification")
    holder = node.hold(1)
    node.end_agent()
    node.config.write_text(f"{node.config.read_text()}cdi: {{enabled: off}}\n")
    node.start_agent()

    def problems() -> list[str]:
        return node.report()["cdi"]["problems"]
    assert any(own.name in problem and others.name not in problem for problem in problems()), problems()
    assert own.exists()
    holder.kill()
    wait_until(lambda: not own.exists(), "the specification to be removed", seen=problems)
    wait_until(lambda: problems() == ["switched off"], "nothing to be left", seen=problems)
    assert others.read_text() == "{}"


def test_many_processes_with_long_command_lines_do_not_make_an_agent_forget(home, request):
    """Without control groups, only the checkpoint records the leases."""
    programs = request.config.getoption("--programs").resolve()
    node = Node(home, programs, config="labels: {timestamp: false}\n")
    subprocess.run(["chown", "-R", "65534", home], check=True)
    command = ["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all"]
    many = "import os, sys, time\nfor i in range(1100):\n  if os.fork() == 0:\n    time.sleep(1000)\nopen(sys.argv[1], 'w').close()\ntime.sleep(1000)\n"
    program, ready = None, home / "ready"
    try:
        node.start_agent(wrapper=tuple(command))
        program = subprocess.Popen([*command, programs / "penstock", "--run-dir", node.run_dir, "run", "--", "/usr/bin/python3", "-c", many, ready, "x" * 4000],
                                   start_new_session=True)
        wait_until(ready.exists, "1,100 children")
        wait_until(lambda: len(node.holders()) == 1 and len(node.holders()[0]["pids"]) > 1000, "all processes to be found")
        [lease] = node.holders()
        assert lease["enforcement"] == "visibility"
        checkpoint = node.state_dir / "ledger.json"
        wait_until(lambda: checkpoint.exists() and [len(one["processes"]) for one in json.loads(checkpoint.read_text())["leases"]] == [16],
                   "a checkpoint with as many processes as it keeps of a lease", seen=lambda: checkpoint.exists() and checkpoint.read_text())
        node.kill_agent()
        assert checkpoint.stat().st_size < 100_000
        node.start_agent(wrapper=tuple(command))
        wait_until(lambda: [one["lease"] for one in node.holders()] == [lease["lease"]], "the lease to be taken over")
        assert not list(node.state_dir.glob("*.damaged"))
    finally:
        if program is not None:
            subprocess.run(["pkill", "-KILL", "-s", str(program.pid)])
            program.wait(PATIENCE)
        node.end()


def test_without_descriptors_a_lease_ends_with_its_program_and_not_before(node):
    node.start_agent()
    first, second = node.hold(1), node.hold(1)
    limit = next(line for line in Path(f"/proc/{node.agent.pid}/limits").read_text().splitlines() if line.startswith("Max open files"))
    assert int(limit.split()[3]) > 1024, "the agent raises its limit of descriptors"
    subprocess.run(["prlimit", f"--pid={node.agent.pid}", f"--nofile=0:{limit.split()[4]}"], check=True)
    first.kill()
    first.communicate()
    # No request reaches the agent; it has seen the end once it cannot write the record of the program.
    wait_until(lambda: "cannot write usage records" in node.log(), "the agent to see the end of the program", seen=node.log)
    subprocess.run(["prlimit", f"--pid={node.agent.pid}", f"--nofile={limit.split()[4]}"], check=True)
    checkpoint = node.state_dir / "ledger.json"
    wait_until(lambda: checkpoint.exists() and len(json.loads(checkpoint.read_text())["leases"]) == 1, "the lease to end", seen=node.log)
    assert second.poll() is None and len(node.holders()) == 1
