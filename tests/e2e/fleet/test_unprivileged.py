"""The chart's unprivileged form: a runtime class injects driver and devices, and the agents' containers may do nothing else on their nodes. The runtime is Penstock's
own, told to do as NVIDIA's does: a container that is not privileged gets what its environment names."""
import contextlib
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from actors import OPENED, REFUSED, wait_for
from catalogue import LABELS
from fleet import ACCELERATORS, NAMESPACE, VALUES, WITHOUT_CDI, Fleet, Node
from inside import CGROUPS

CLASS, RUNTIME = "nvidia", "/var/lib/penstock/penstock-runtime"
TOOLKIT, SPECIFICATION, ENGINE = "/etc/nvidia-container-runtime/config.toml", "/etc/cdi/nvidia.yaml", "/etc/containerd/config.toml"
AS_NVIDIA = "accept-nvidia-visible-devices-envvar-when-unprivileged = true\n"
SYSFS = "/machine/sys"  # no runtime injects it: that of a container shows the machine on which the tests run
AT_ONCE = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}}}
UNPRIVILEGED = AT_ONCE | {"runtimeClassName": CLASS, "penstock": {
    "runtimeClass": {"create": True, "name": CLASS},
    "extraVolumes": [{"name": "sysfs", "hostPath": {"path": f"{ACCELERATORS}/sys"}}],
    "extraVolumeMounts": [{"name": "sysfs", "mountPath": SYSFS, "readOnly": True}],
    "config": {"paths": {"sysfsRoot": SYSFS}, "labels": {"machineTypeFile": f"{SYSFS}/class/dmi/id/product_name"}}}}

OF_THE_HOST = {"/var/lib/kubelet/device-plugins", "/run/penstock", "/var/lib/penstock"}
OF_THE_POD = {"/etc/hosts", "/run/termination-log", "/sys/fs/cgroup"}  # the last one is a folder of read-only mounts
INJECTED = {f"/run/nvidia-{daemon}/socket" for daemon in ("persistenced", "fabricmanager")}  # with the driver

# What asks for privileges in a configuration that agents read later, where the chart cannot refuse it.
ASKS_FOR_PRIVILEGES = """apiVersion: penstock.io/v1alpha1
kind: NodeConfig
containers: {configureEngine: runtime}
sharing: {rules: [{strategy: mps, replicas: 2}]}
"""


def on_all(fleet: Fleet, act):
    with ThreadPoolExecutor(len(fleet.nodes)) as beside:
        list(beside.map(act, fleet.nodes.values()))


@contextlib.contextmanager
def runtime_that_injects(fleet: Fleet):
    """The engines of all nodes have the handler of the class, as an administrator sets it up: `penstock runtime configure` and `penstock cdi generate`."""
    before = {node.name: node.run("cat", ENGINE).stdout for node in fleet.nodes.values()}

    def set_up(node: Node):
        node.run("sh", "-c", f"mkdir -p $(dirname {TOOLKIT}) && cat > {TOOLKIT}", input=AS_NVIDIA)
        node.run(node.programs / "penstock", "cdi", "generate", "--driver-root", ACCELERATORS, "--output", SPECIFICATION)
        node.run(node.programs / "penstock", "runtime", "configure", "--runtime", "containerd", "--runtime-name", CLASS, "--runtime-path", RUNTIME)
        fleet.cluster.restart_engine(node.k)

    def take_back(node: Node):
        node.run(node.programs / "penstock", "runtime", "unconfigure", "--runtime", "containerd")
        node.run("rm", "-rf", Path(TOOLKIT).parent, SPECIFICATION)
        fleet.cluster.restart_engine(node.k)
    try:
        on_all(fleet, set_up)
        yield
    finally:
        on_all(fleet, take_back)
    assert {node.name: node.run("cat", ENGINE).stdout for node in fleet.nodes.values()} == before


@pytest.fixture(scope="module")
def unprivileged(fleet):
    """The unprivileged agents, which took over from privileged ones, below a pod that holds a GPU. Afterwards privileged ones take over again."""
    fleet.clear()
    fleet.ensure_installed()
    fleet.wait_rolled_out()
    fleet.wait_offered()
    with runtime_that_injects(fleet):
        fleet.hold("before", "n1", 1)
        fleet.wait_held("before")
        try:
            fleet.install(UNPRIVILEGED)
            fleet.wait_rolled_out()
            fleet.wait_offered()
            yield fleet
        finally:
            fleet.install(AT_ONCE)
            fleet.wait_rolled_out()
    fleet.wait_offered()
    fleet.check()


def agent_pod(fleet: Fleet, node: Node) -> dict:
    return fleet.get("pod", fleet.agent_pods()[node.name], "-n", NAMESPACE)


def status_of(pid: int) -> dict[str, str]:
    lines = Path("/proc", str(pid), "status").read_text().splitlines()
    return {key: value.strip() for key, value in (line.split(":", 1) for line in lines)}


def written_by(pid: int) -> set[str]:
    """Where the process can write, except below /dev and /proc, which are its own. Control groups of version 1 count as read-only, which containerd 2 makes them:
    1.7 cannot (docs/security.md)."""
    mounts = [line.split() for line in Path("/proc", str(pid), "mountinfo").read_text().splitlines()]
    return {words[4] for words in mounts if "rw" in words[5].split(",") and not f"{words[4]}/".startswith(("/dev/", "/proc/"))
            and not words[4].startswith("/host-cgroup/")}


def opened_by_rules_of(pid: int, file: Path) -> str:
    """What the device rules of that process permit, asked by a process with all capabilities in the same control group: nothing else refuses it."""
    groups = dict(line.split(":", 2)[1:] for line in Path("/proc", str(pid), "cgroup").read_text().splitlines())
    group = CGROUPS / "devices" / groups["devices"][1:] if "devices" in groups else CGROUPS / groups[""][1:]
    done = subprocess.run(["sh", "-c", 'echo $$ > "$0/cgroup.procs" && : < "$1"', group, file], capture_output=True, text=True)
    return REFUSED if "not permitted" in done.stderr else OPENED if not done.returncode or "No such device or address" in done.stderr else done.stderr


def test_unprivileged_agents_advertise_their_gpus_and_pods_hold_them(unprivileged):
    fleet = unprivileged
    for name in ("n1", WITHOUT_CDI):
        fleet.hold("since", name, 1)
    fleet.wait_held("before", "since")
    fleet.check()
    for name, node in fleet.nodes.items():
        wanted = {f"nvidia.com/{key}": value for key, value in LABELS[name].items()}
        wait_for(lambda: wanted.items() <= fleet.labels(name).items(), 60, f"the labels of {name}", lambda: (wanted, fleet.labels(name)))  # noqa: B023
        wait_for(lambda: all(condition["status"] for condition in node.status()["conditions"]), 60, f"no condition of {name} to be false",  # noqa: B023
                 lambda: json.dumps(node.status(), indent=1))  # noqa: B023
        status = node.status()
        assert status["cdi"]["problems"] == ["switched off"] and not status["cdi"]["remarks"] and not status["configuration"]["problem"], status
        assert [device["health"]["state"] for device in status["devices"]] == ["healthy"] * len(node.machine.minors()), status["devices"]


def test_an_unprivileged_agents_processes_have_no_capability_and_write_to_its_own_folders_only(unprivileged):
    for node in unprivileged.nodes.values():
        pod = agent_pod(unprivileged, node)
        [container] = pod["spec"]["containers"]
        assert pod["spec"]["runtimeClassName"] == CLASS
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
                                                "seccompProfile": {"type": "RuntimeDefault"}}
        processes = node.processes()
        assert {"penstock-agent", "penstock-worker"} <= set(processes.values()), processes
        for pid, program in processes.items():
            status = status_of(pid)
            held = {key: status[key] for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb") if int(status[key], 16)}
            assert not held and (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2"), f"{program} on {node.name}: {status}"
        assert written_by(node.agent()) - INJECTED == OF_THE_HOST | OF_THE_POD


def test_an_unprivileged_agents_container_opens_its_own_gpus_and_neither_others_nor_the_hosts_files(unprivileged):
    node, others = unprivileged.nodes[WITHOUT_CDI], unprivileged.nodes["n1"].machine
    agent, [own] = node.agent(), node.machine.minors().values()
    foreign = next(minor for minor in others.minors().values() if minor != own)
    assert opened_by_rules_of(agent, node.machine.root / f"dev/nvidia{own}") == OPENED
    assert opened_by_rules_of(agent, others.root / f"dev/nvidia{foreign}") == REFUSED
    assert opened_by_rules_of(agent, Path("/dev/kmsg")) == REFUSED
    # The first process of the node has the host's files, and the same user.
    read = unprivileged.kubectl("exec", "-n", NAMESPACE, unprivileged.agent_pods()[node.name], "--", "penstock", "config", "check", "/proc/1/root/etc/os-release", check=False)
    assert read.returncode and "ermission denied" in read.stdout + read.stderr, read


def test_what_needs_privileges_is_off_in_the_unprivileged_form_and_status_or_log_says_so(unprivileged):
    fleet, node, usual = unprivileged, unprivileged.nodes[WITHOUT_CDI], VALUES["config"]["map"]
    for one in fleet.nodes.values():
        allocator = one.allocator("kubelet")
        assert allocator["deviceList"] == ["envvar", "device-files"] and allocator["deviceListReason"] == "no CDI specifications are written on this node", allocator
        log = fleet.kubectl("logs", "-n", NAMESPACE, fleet.agent_pods()[one.name]).stdout
        assert "cannot read the kernel log" in log and "which requires a privileged container" in log, log
    fleet.delete_all_pods()
    engine = node.run("cat", ENGINE).stdout
    fleet.edit(usual | {"asks": ASKS_FOR_PRIVILEGES})
    fleet.choose(node.name, "asks")
    wait_for(lambda: not node.kubelet_lists(), 60, "the kubelet to list no GPU", node.kubelet_lists)
    why = wait_for(lambda: (servers := node.status()["servers"]) and servers[0]["reason"], 60, "status to say why there is no MPS", node.status)
    assert "if the container is privileged" in why, why
    unset = "the container engine is not configured: the container engine cannot be queried"
    wait_for(lambda: any(problem.startswith(unset) for problem in node.status()["cdi"]["problems"]), 60, "status to say that the engine is not configured",
             lambda: node.status()["cdi"])
    assert node.run("cat", ENGINE).stdout == engine
    fleet.choose(node.name, None)
    wait_for(lambda: node.kubelet_lists() == node.offers(), 60, "the GPU to be whole again", node.kubelet_lists)
    fleet.edit(usual)
