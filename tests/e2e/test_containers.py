"""The devices and driver files inside a pod, for each way from the agent's answer to the container: CDI where containerd supports it, device files elsewhere;
also while agent, engine and specifications are restarted or change."""
import json
import re

import pytest
from actors import DEBIAN, GPU, OPENED, REFUSED, wait_for

SPECIFICATION = "/var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json"
FILES = "device-files"  # appears beside an answer that another program parses
LIBCUDA = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
CONTAINERD = "/etc/containerd/config.toml"


def listed(output: str) -> list[str]:
    """The UUIDs that nvidia-smi -L lists."""
    return re.findall(r"^GPU \d+: .* \(UUID: (GPU-\S+)\)$", output, re.M)


def finished(kubernetes, pod: str) -> str:
    """The pod's output, once it has succeeded."""
    wait_for(lambda: kubernetes.phase(pod) == "Succeeded", 60, f"pod {pod} to succeed", lambda: kubernetes.get("pod", pod)["status"])
    return kubernetes.logs_of(pod)


def way(agent) -> list[str]:
    """How containers get devices, as the agent reports."""
    return agent.kubelet_allocator()["deviceList"]


@pytest.fixture
def strategy(agent, kubernetes):
    """`strategy("envvar", ...)`: configures the device list strategies; at the end the agent chooses again."""
    def choose(*names: str):
        agent.configure(f"containers: {{deviceList: {json.dumps(names)}}}\n")
        wait_for(lambda: [name for name in way(agent) if name != FILES] == list(names), 60, f"the strategies {names} to be in effect", agent.describe)
        kubernetes.wait_for_gpus(8)

    yield choose
    agent.configure("")
    wait_for(lambda: way(agent) == ["cdi-cri"], 60, "the agent to choose again", agent.describe)


@pytest.fixture
def engine(agent, kubernetes, cluster):
    """`engine(cdi=False)`: restarts containerd with that setting; at the end it has its original setting."""
    def restart(cdi: bool):
        words = ("false", "true") if cdi else ("true", "false")
        cluster.run("sed", "-i", f"s/enable_cdi = {words[0]}/enable_cdi = {words[1]}/", CONTAINERD)
        cluster.restart_engine()

    yield restart
    restart(cdi=True)
    wait_for(lambda: way(agent) == ["cdi-cri"], 60, "the agent to see that CDI is on again", agent.describe)


def test_a_job_that_runs_nvidia_smi_lists_one_gpu(agent, kubernetes, machine):
    """Walkthrough H. The image contains no driver files."""
    container = {"name": "main", "image": DEBIAN, "imagePullPolicy": "Never", "command": ["nvidia-smi"], "resources": {"limits": {GPU: 1}}}
    kubernetes.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "smi"},
                       "spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}})
    try:
        kubernetes.kubectl("wait", "--for=condition=Complete", "job/smi", "--timeout=180s", "--request-timeout=190s")
        said = kubernetes.kubectl("logs", "job/smi").stdout
        assert said.count("NVIDIA A100-SXM4-40GB") == 1 and "Driver Version: 550.54.15" in said, said
    finally:
        kubernetes.kubectl("delete", "job", "smi", "--wait=true", "--ignore-not-found")


def test_a_pod_with_one_gpu_can_open_it_and_has_the_library_that_cuda_programs_load(agent, kubernetes, machine):
    """Walkthrough B, as far as it works without hardware: the kernel itself needs a GPU."""
    open_all = 'for f in /dev/nvidia[0-9] /dev/nvidiactl /dev/nvidia-uvm; do echo "$f $(cat $f 2>&1 >/dev/null)"; done'
    kubernetes.create_pod("cuda-vectoradd", gpus=1, image=DEBIAN, command=f"nvidia-smi -L; {open_all}; ls -L {LIBCUDA}; ldconfig -p")
    said = finished(kubernetes, "cuda-vectoradd")
    [uuid] = listed(said)
    minor = machine.minors()[uuid]
    opened = [line.split()[0] for line in said.splitlines() if line.startswith("/dev/") and line.endswith("No such device or address")]
    assert opened == [f"/dev/nvidia{minor}", "/dev/nvidiactl", "/dev/nvidia-uvm"], said
    assert f"\n{LIBCUDA}\n" in said and f"libcuda.so.1 (libc6,x86-64) => {LIBCUDA}\n" in said


def test_the_agent_asks_the_engine_and_says_what_it_chose(agent, kubernetes):
    allocator = agent.kubelet_allocator()
    assert allocator["deviceList"] == ["cdi-cri"] and "containerd 1.7" in allocator["deviceListReason"], allocator
    assert "containers get devices by cdi-cri" in agent.describe()


@pytest.mark.parametrize("names", [("cdi-cri",), ("cdi-annotations",), ("cdi-annotations", "cdi-cri")], ids="+".join)
def test_by_cdi_a_pod_has_exactly_its_gpus_and_their_driver(strategy, kubernetes, machine, names):
    strategy(*names)
    kubernetes.run_pod("two", gpus=2, image=DEBIAN)
    has = kubernetes.gpus_of("two", machine)
    assert len(has) == 2 and listed(kubernetes.inside("two", "nvidia-smi -L")) == has
    own = {machine.minors()[uuid] for uuid in has}
    assert kubernetes.openable("two", range(8)) == {minor: OPENED if minor in own else REFUSED for minor in range(8)}
    assert kubernetes.told("two") == ["void"]


@pytest.mark.parametrize("names", [("envvar",), ("volume-mounts",), ("envvar", "volume-mounts")], ids="+".join)
def test_without_cdi_a_pod_has_its_device_files_and_is_told_which(strategy, kubernetes, machine, names):
    strategy(*names)
    kubernetes.run_pod("two", gpus=2, image=DEBIAN)
    has = set(kubernetes.gpus_of("two", machine))
    assert len(has) == 2
    own = {machine.minors()[uuid] for uuid in has}
    assert kubernetes.openable("two", range(8)) == {minor: OPENED if minor in own else REFUSED for minor in range(8)}
    mounted = kubernetes.inside("two", "ls /var/run/nvidia-container-devices 2>/dev/null || true").split()
    assert set(mounted) == (has if "volume-mounts" in names else set())
    told = set(kubernetes.told("two"))
    assert told == ({"/var/run/nvidia-container-devices"} if "volume-mounts" in names else has), told
    assert not kubernetes.inside("two", f"ls {LIBCUDA} 2>/dev/null || true").strip(), "the driver is a wrapper's to bring"


def test_an_engine_without_cdi_gets_device_files_and_the_agent_notices_either_way(engine, agent, kubernetes, machine):
    engine(cdi=False)
    wait_for(lambda: way(agent) == ["envvar", FILES], 60, "the agent to see that CDI is off", agent.describe)
    assert "enable_cdi" in agent.kubelet_allocator()["deviceListReason"]
    kubernetes.run_pod("without", gpus=1, image=DEBIAN)
    [uuid] = kubernetes.gpus_of("without", machine)
    assert kubernetes.told("without") == [uuid]
    engine(cdi=True)
    wait_for(lambda: way(agent) == ["cdi-cri"], 60, "the agent to see that CDI is on", agent.describe)
    kubernetes.run_pod("with", gpus=1, image=DEBIAN)
    assert listed(kubernetes.inside("with", "nvidia-smi -L")) == kubernetes.gpus_of("with", machine)


def test_the_agent_configures_the_engine_where_it_is_told_to_and_that_can_be_undone(engine, agent, kubernetes, cluster):
    """No systemd unit runs this containerd, so the agent leaves the restart to its administrator."""
    def configuration() -> str:
        return cluster.view().path(CONTAINERD).read_text()

    def daemon() -> str:  # the oldest: the agent asks other processes of that name for the effective setting
        return cluster.run("pgrep", "-xo", "containerd").stdout

    engine(cdi=False)
    wait_for(lambda: way(agent) == ["envvar", FILES], 60, "the agent to see that CDI is off", agent.describe)
    before, pid = configuration(), daemon()
    try:
        agent.configure("containers: {configureEngine: cdi}\n")
        wait_for(lambda: "enable_cdi = true" in configuration(), 60, "the engine's file to be changed", agent.describe)
        assert configuration().replace("enable_cdi = true", "enable_cdi = false") == before, "and nothing else"
        assert daemon() == pid, "the agent does not restart it"
        cluster.restart_engine()
        wait_for(lambda: way(agent) == ["cdi-cri"], 60, "the agent to see that CDI is on", agent.describe)
    finally:
        agent.configure("")
        wait_for(lambda: json.loads(agent.penstock("plan", "-o", "json").stdout)["changes"] == [], 60, "the agent to leave the engine alone", agent.describe)
        cluster.run(agent.programs / "penstock", "--state-dir", agent.state_dir, "runtime", "unconfigure", "--all")
    assert configuration() == before


def test_a_device_is_offered_once_a_specification_names_it(agent, kubernetes, machine, cluster):
    """Where the specification cannot be written the kubelet gets no devices and every interface reports the reason; afterwards it recovers without
    intervention."""
    agent.stop()
    agent.configure("cdi: {enabled: on}\n")  # else an agent without write access would do without CDI
    cluster.run("sh", "-c", "rm -f /var/run/cdi/*; mount -t tmpfs -o ro tmpfs /var/run/cdi")
    try:
        agent.start()
        agent.wait_serving()
        wait_for(lambda: agent.status()["cdi"]["problems"], 60, "the agent to report that it cannot write", agent.describe)
        assert "/var/run/cdi" in " ".join(agent.status()["cdi"]["problems"])
        assert kubernetes.gpus_the_kubelet_has() == set()
    finally:
        cluster.run("umount", "/var/run/cdi")
        agent.configure("")
    wait_for(lambda: kubernetes.gpus_the_kubelet_has() == set(machine.minors()), 60, "the kubelet to get the devices", agent.describe)
    named = {device["name"] for device in json.loads(cluster.run("cat", SPECIFICATION).stdout)["devices"]}
    assert named == set(machine.minors())


def test_a_container_restarts_in_place_while_no_agent_runs(agent, kubernetes, machine):
    """The kubelet keeps the answer that it got; the specification still exists."""
    kubernetes.run_pod("phoenix", gpus=1, image=DEBIAN, restart="Always", command="nvidia-smi -L; exec sleep 100000")
    before = wait_for(lambda: listed(kubernetes.logs_of("phoenix")), 60, "the pod to have listed its GPU")
    agent.kill()
    stop_first_process(kubernetes, "phoenix")
    wait_for(lambda: restarts(kubernetes, "phoenix") == 1 and kubernetes.ready("phoenix"), 60, "the container to run again",
             lambda: kubernetes.get("pod", "phoenix")["status"])
    assert len(before) == 1
    wait_for(lambda: listed(kubernetes.logs_of("phoenix")) == before, 60, "the container to list the same GPU again", lambda: kubernetes.logs_of("phoenix"))


def restarts(kubernetes, pod: str) -> int:
    return kubernetes.get("pod", pod)["status"]["containerStatuses"][0]["restartCount"]


def stop_first_process(kubernetes, pod: str):
    """Kills the process from outside, as a crash does, since a namespace's first process ignores signals from inside."""
    container = kubernetes.get("pod", pod)["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    kubernetes.cluster.run("ctr", "-n", "k8s.io", "task", "kill", "--signal", "KILL", container)


def test_another_driver_is_what_the_next_pod_has(agent, kubernetes, machine):
    machine.fault("driver", "unload")
    kubernetes.wait_for_gpus(0)
    machine.install("570.124.06")
    kubernetes.wait_for_gpus(8)
    kubernetes.create_pod("newer", gpus=1, image=DEBIAN, command=f"nvidia-smi -L; readlink -f {LIBCUDA}")
    said = finished(kubernetes, "newer")
    assert len(listed(said)) == 1 and said.endswith("libcuda.so.570.124.06\n"), said
    machine.fault("driver", "unload")
    machine.install("550.54.15")
    kubernetes.wait_for_gpus(8)
