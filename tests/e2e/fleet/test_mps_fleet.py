"""GPUs shared by MPS: the environment of pods, limits that hold, servers that exit or hang, and an upgrade while clients run."""
import json
from collections import Counter

import pytest
from actors import DEBIAN, GPU, wait_for
from fleet import ACCELERATORS, BY_UUID, Fleet, Node, device_of, pod_on
from test_mig_fleet import ask, wait_layout
from test_sharing import configure

SHARED = f"{GPU}.shared"
WITHOUT_FOLDER = {"penstock": {"mps": {"enabled": False}}}
CLIENT = f"{ACCELERATORS}/usr/bin/mps-client"
LIMIT = 40960 // 4  # MiB, of a quarter of an A100
MIG = "nvidia.com/mig-3g.20gb"
MIG_LIMIT = 19968 // 2  # MiB, of a half of such a MIG device


def by_mps(replicas: int, *devices: int) -> str:
    chosen = f", devices: {json.dumps(devices)}" if devices else ""
    return f"version: v1\nsharing:\n  mps:\n    renameByDefault: true\n    resources:\n    - {{name: nvidia.com/gpu, replicas: {replicas}{chosen}}}\n"


@pytest.fixture
def served(fleet):
    """The first two GPUs of the DGX are shared by MPS, four times each; the others are whole."""
    fleet.clear()
    fleet.ensure_installed()  # MPS needs no further setting
    fleet.wait_rolled_out()
    fleet.wait_offered()
    node = fleet.nodes["n1"]
    uuids = node.uuids()
    configure(fleet, "n1", by_mps(4, 0, 1), {GPU: {uuid: 1 for uuid in uuids[2:]}, SHARED: {uuid: 4 for uuid in uuids[:2]}})
    wait_for(lambda: node.kubelet_lists() == node.offers(), 120, "the kubelet of n1 to have the shares", lambda: (node.kubelet_lists(), said(node)))
    fleet.wait_advertised(60)
    yield fleet
    node.machine.heal_mps()
    fleet.kubectl("delete", "pods", "--all", "--wait=true", "--timeout=300s")
    fleet.edit({"by-uuid": BY_UUID})
    fleet.choose("n1", None)
    wait_for(lambda: not processes(node), 120, "the servers of a removed set to exit", lambda: (processes(node), said(node)))


def processes(node: Node) -> dict[int, str]:
    """The node's MPS report."""
    return {pid: " ".join(words) for pid, words in node.view.programs().items() if "nvidia-cuda-mps" in words[0]}


def said(node: Node) -> str:
    status = node.status()
    return json.dumps([status["servers"], [(device["index"], device["withheld"], device["health"]) for device in status["devices"]]])


def program(node: str, command: str, resource: str) -> dict:
    """A pod with the files that a program on the simulated machine needs: the machine, and a C library."""
    spec = pod_on(node, command, resource, DEBIAN)
    spec["volumes"] = [{"name": "machine", "hostPath": {"path": ACCELERATORS}}]
    spec["containers"][0]["volumeMounts"] = [{"name": "machine", "mountPath": ACCELERATORS}]
    return spec


def start(fleet: Fleet, name: str, command: str = "exec sleep 100000", resource: str = SHARED, node: str = "n1"):
    fleet.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
                  "spec": program(node, command, resource)})


def client_holds(fleet: Fleet, pod: str) -> str:
    """The server of the client in that pod."""
    line = wait_for(lambda: next((line for line in fleet.logs_of(pod).splitlines() if line.startswith("mps server")), None), 60,
                    f"the client in {pod} to have a server", lambda: fleet.logs_of(pod))
    return line.split()[-1]


def test_pods_of_a_set_share_its_server_and_its_memory_and_others_have_their_own(served):
    node = served.nodes["n1"]
    for name in ("one", "two"):
        start(served, name)
    start(served, "alone", resource=GPU)
    served.wait_held("one", "two", "alone")
    served.check()
    pipe = served.inside("one", "echo $CUDA_MPS_PIPE_DIRECTORY").strip()
    assert pipe and served.inside("one", f"ls {pipe}").strip(), "no pipe"
    assert not served.inside("alone", "echo $CUDA_MPS_PIPE_DIRECTORY").strip()
    served.inside("one", "touch /dev/shm/seen")
    assert "seen" in served.inside("two", "ls /dev/shm") and "seen" not in served.inside("alone", "ls /dev/shm")
    assert "seen" not in node.run("ls", "/dev/shm").stdout, "it is the machine's own"
    served.inside("one", "rm /dev/shm/seen")

    fits = served.inside("one", f"{CLIENT} --allocate {LIMIT - 1000}")
    assert f"limit {LIMIT} 25" in fits and f"allocated {LIMIT - 1000}" in fits, fits
    refused = served.inside("one", f"{CLIENT} --allocate {LIMIT + 1} || echo ended with $?")
    assert "ended with 2" in refused, refused
    assert "no mps" in served.inside("alone", f"{CLIENT}")
    shares = [device for device in node.status()["devices"] if device["sharing"] == "mps"]
    assert [(device["index"], device["isolation"], device["shareMemoryBytes"] >> 20) for device in shares] == [
        (0, "memory-per-process", LIMIT), (1, "memory-per-process", LIMIT)]
    assert served.labels("n1")["nvidia.com/mps.capable"] == "true"


def test_an_mps_daemon_that_dies_is_started_again_once_its_clients_have_gone(served, measure):
    node = served.nodes["n1"]
    start(served, "client", f"exec {CLIENT} --hold")
    client_holds(served, "client")
    with measure("an MPS daemon is killed: the kubelet has none of its shares"):
        node.machine.fault("mps", "die")
        wait_for(lambda: SHARED not in node.kubelet_lists(), 60, "the shares to be withdrawn", lambda: said(node))
    [server] = node.status()["servers"]
    assert server["state"] == "waiting" and server["reason"], server
    assert len(node.kubelet_has()) == 6, "GPUs that are not shared are not affected"
    served.wait_held("client")
    with measure("its last client ends: a new daemon, and the shares are back"):
        served.delete_pod("client")
        wait_for(lambda: node.kubelet_lists() == node.offers(), 60, "the shares to be back", lambda: said(node))
    served.wait_advertised(60)
    served.check()


@pytest.mark.parametrize("fault", ["hang", "nonsense"])
def test_an_mps_daemon_that_does_not_answer_takes_its_shares_out_until_it_does(served, fault):
    node = served.nodes["n1"]
    node.machine.fault("mps", fault)
    wait_for(lambda: [server["state"] for server in node.status()["servers"] if server["reason"]] == ["waiting"], 60,
             "status to report that the server does not answer", lambda: said(node))
    wait_for(lambda: SHARED not in node.kubelet_lists() and len(node.kubelet_has()) == 6, 60, "the shares to be withdrawn", node.kubelet_lists)
    node.machine.heal_mps()
    wait_for(lambda: node.kubelet_lists() == node.offers(), 120, "the shares to be back", lambda: said(node))
    served.wait_advertised(60)
    served.check()


def test_an_upgrade_of_the_agent_leaves_the_server_to_its_clients(served):
    node = served.nodes["n1"]
    start(served, "client", f"exec {CLIENT} --hold")
    served.wait_held("client")
    server, before = client_holds(served, "client"), processes(node)
    assert before
    served.restart_agents()
    served.wait_rolled_out()
    assert before.items() <= processes(node).items(), "the daemon or its server was replaced"
    wait_for(lambda: [its["clients"] for its in node.status()["servers"]] == [1], 60, "the new agent to know the client", lambda: said(node))
    pod = served.get("pod", "client")["status"]["containerStatuses"][0]
    assert pod["ready"] and pod["restartCount"] == 0 and client_holds(served, "client") == server
    assert "allocated 100" in served.inside("client", f"{CLIENT} --allocate 100")
    served.wait_advertised(60)
    served.check()


@pytest.fixture
def divided(fleet):
    """The A100 of n4 is divided into two MIG devices, each shared by two."""
    fleet.clear()
    fleet.ensure_installed()
    fleet.wait_rolled_out()
    configure(fleet, "n4", f"version: v1\nflags: {{migStrategy: mixed}}\nsharing: {{mps: {{resources: [{{name: {MIG}, replicas: 2}}]}}}}\n", {})
    fleet.wait_status("n4", lambda status: "own" in status["configuration"]["origin"], 60)
    ask(fleet, "all-3g.20gb")
    wait_layout(fleet, "success", {"mig-3g.20gb": 4})
    yield fleet
    fleet.kubectl("delete", "pods", "--all", "--wait=true", "--timeout=300s")
    ask(fleet, "all-disabled")
    wait_layout(fleet, "success", gpu=1)
    ask(fleet, None)
    fleet.choose("n4", None)
    wait_for(lambda: not processes(fleet.nodes["n4"]), 120, "the servers of MIG devices that are gone to exit", lambda: said(fleet.nodes["n4"]))


def test_pods_share_mig_devices_each_with_a_server_of_its_own(divided):
    node, names = divided.nodes["n4"], ("a", "b", "c", "d")
    for name in names:
        start(divided, name, resource=MIG, node="n4")
    divided.wait_held(*names)
    gave = {pod: device_of(next(iter(slots))) for pod, slots in node.kubelet_gave().items()}
    assert sorted(Counter(gave.values()).values()) == [2, 2], gave
    pipes = {pod: divided.inside(pod, "echo $CUDA_MPS_PIPE_DIRECTORY; ls $CUDA_MPS_PIPE_DIRECTORY | head -1").split() for pod in gave}
    assert all(len(seen) == 2 for seen in pipes.values()), pipes
    fits = divided.inside("a", f"{CLIENT} --allocate {MIG_LIMIT}")
    assert f"limit {MIG_LIMIT} 50" in fits and f"allocated {MIG_LIMIT}" in fits, fits
    refused = divided.inside("a", f"{CLIENT} --allocate {MIG_LIMIT + 1} || echo ended with $?")
    assert "ended with 2" in refused, refused
    daemons = [words for words in processes(node).values() if "mps-control" in words]
    assert len(daemons) == 2, daemons


def test_mps_without_what_it_needs_is_offered_nowhere_and_status_says_why(installed):
    installed.install(WITHOUT_FOLDER)
    installed.wait_rolled_out()
    node = installed.nodes["n4"]
    [uuid] = node.machine.minors()
    configure(installed, "n4", by_mps(4), {SHARED: {}})
    wait_for(lambda: not node.kubelet_lists(), 60, "the kubelet of n4 to list no device", node.kubelet_lists)
    why = wait_for(lambda: (server := node.status()["servers"]) and server[0]["reason"], 60, "status to report the reason", lambda: said(node))
    assert "penstock.mps.enabled" in why, why
    installed.choose("n4", None)
    wait_for(lambda: node.kubelet_has() == {uuid}, 60, "the GPU to be whole again", lambda: said(node))
