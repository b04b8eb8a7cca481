"""Each agent starts a container with its node's devices after each change of the engine, and no other: what that container cannot open is on the Node, with the
cause; nothing of it is left, whatever becomes of agent and kubelet."""
import os
import re
import signal
import time

import pytest
from actors import wait_for
from fleet import WITHOUT_CDI, Fleet
from test_validation_fleet import condition, conditions_written, wait_condition
from witnesses import Audit

CONTAINERD, ENGINE = "/etc/containerd/config.toml", "containerd"
WRAPPER, MODE = "/var/lib/penstock-test-runtime", "/var/lib/penstock-test-mode"
MISSING = "/dev/nvidia-uvm"
BROKEN = "n1"
APART = 30  # seconds between two containers of an agent: what changes meanwhile makes one at the end of them
PATIENCE = 300  # seconds until a verdict: on a machine that is busy, the kubelet ends several containers by chance before one answers
STATE, LOG = "/var/lib/penstock", "penstock-proof.log"
# A low-level runtime that containers of the agent's validation meet in the state that the file says: with a device file elsewhere, slowly, with
# a program in them that does not answer, or never with devices.
RUNTIME = f"""#!/bin/sh
for word; do
    case $last in
        --bundle) file=$word/config.json ;;
        --process) program=$word ;;
    esac
    last=$word
done
if [ -n "$program" ] && grep -q '"/penstock-probe"' "$program" && [ "$(cat {MODE})" = mute ]; then sleep 60; fi
if [ -n "$file" ] && grep -q '"/penstock-probe"' "$file"; then
    case $(cat {MODE}) in
        hang) if grep -q '"path":"{MISSING}"' "$file"; then exec sleep 3600; fi ;;
        drop) sed -i 's#"path":"{MISSING}"#"path":"{MISSING}.elsewhere"#' "$file" ;;
        slow) sleep 8 ;;
    esac
fi
exec RUNC "$@"
"""


def toolkit(fleet: Fleet, name: str) -> dict:
    return next(step for step in fleet.nodes[name].status()["validation"] if step["name"] == "toolkit")


def wait_toolkit(fleet: Fleet, name: str, state: str, reason: str, seconds: float = PATIENCE):
    """The agent may be starting, and know no step yet."""
    def seen() -> str:
        done = fleet.nodes[name].penstock("validate", check=False)
        return done.stdout + done.stderr
    wait_for(lambda: (step := toolkit(fleet, name))["state"] == state and re.search(reason, step["reason"]), seconds, f"the step toolkit of {name} to be {state}: {reason}", seen)


def started(fleet: Fleet, name: str) -> int:
    """How many sandboxes of the validation the engine was asked for, ever."""
    log = fleet.cluster.home(ENGINE, fleet.nodes[name].k) / "log" / f"{ENGINE}.log"
    return len(re.findall(r"RunPodSandbox for &PodSandboxMetadata\{Name:penstock-proof,[^\n]*returns", log.read_text()))


def removed_by_kubelet(fleet: Fleet, name: str) -> set[str]:
    """The containers of the validation that were removed one by one, ever: an agent removes their sandboxes."""
    log = (fleet.cluster.home(ENGINE, fleet.nodes[name].k) / "log" / f"{ENGINE}.log").read_text()
    made = re.findall(r'for &ContainerMetadata\{Name:penstock-proof,[^\n]*returns container id \\"(\w+)', log)
    return {one for one in made if f'RemoveContainer for \\"{one}\\" returns successfully' in log}


def answering(fleet: Fleet, name: str) -> set[str]:
    """The containers of the validation that run."""
    return set(fleet.nodes[name].run("ctr", "-n", "k8s.io", "containers", "ls", "-q", 'labels."io.kubernetes.container.name"==penstock-proof').stdout.split()) & set(
        re.findall(r"^(\w+) +\d+ +RUNNING", fleet.nodes[name].run("ctr", "-n", "k8s.io", "tasks", "ls").stdout, re.M))


def entries(fleet: Fleet, name: str) -> dict[str, set[str]]:
    return {folder: set(fleet.nodes[name].run("ls", "-A", folder).stdout.splitlines()) for folder in ("/", "/var", "/var/lib", STATE)}


def started_at_rest(fleet: Fleet) -> dict[str, int]:
    """How many there were on each node, once no agent owes another one."""
    seen: list[tuple[float, dict[str, int]]] = []

    def rests() -> bool:
        now = time.monotonic(), {name: started(fleet, name) for name in fleet.nodes}
        if not seen or seen[-1][1] != now[1]:
            seen.append(now)
        return now[0] - seen[-1][0] > APART + 10  # it is seen some seconds after it was due
    wait_for(rests, 240, f"no container within {APART} s", lambda: seen, every=1)
    return seen[-1][1]


def left(fleet: Fleet, name: str) -> str:
    """The sandboxes of the validation that the engine has."""
    return fleet.nodes[name].run("ctr", "-n", "k8s.io", "containers", "ls", "-q", 'labels."penstock.io/proof"==agent').stdout


@pytest.fixture
def runtime(installed):
    """`runtime(mode)`: how containers of the validation start on one node from now on; the engine has the wrapper until the end."""
    node = installed.nodes[BROKEN]
    [runc] = set(re.findall(r'BinaryName = "(.*/runc)"', node.run("cat", CONTAINERD).stdout))  # beside a handler of ours, which the scenarios before may have left

    def write(path: str, content: str):
        node.run("sh", "-c", f"cat > {path}", input=content)
    write(WRAPPER, RUNTIME.replace("RUNC", runc))
    node.run("chmod", "755", WRAPPER)

    def replace(one: str, other: str):  # and nothing else: an agent may have changed the rest meanwhile
        write(CONTAINERD, node.run("cat", CONTAINERD).stdout.replace(f'"{one}"', f'"{other}"'))
        installed.cluster.restart_engine(node.k)

    def choose(mode: str):
        write(MODE, mode)
        replace(runc, WRAPPER)
    yield choose
    replace(WRAPPER, runc)
    wait_toolkit(installed, BROKEN, "passed", "a container opened")
    node.run("rm", "-f", WRAPPER, MODE)


def test_a_container_has_opened_the_devices_of_each_node_and_is_not_started_again(installed):
    fleet = installed
    for name in fleet.nodes:
        if name == WITHOUT_CDI:  # its containers have the files from the kubelet
            wait_toolkit(fleet, name, "passed", r"by envvar, device-files .*; a container opened 0 device files, and may open [1-9]\d* that no driver serves"
                                                r" \(without a runtime handler: the engine has no runtime handler nvidia that is /\S+\)$")
        else:
            wait_toolkit(fleet, name, "passed", r"; a container opened 0 device files, and may open [1-9]\d* that no driver serves$")
    wait_for(lambda: not any(left(fleet, name) for name in fleet.nodes), 60, "no sandbox to be left", lambda: {name: left(fleet, name) for name in fleet.nodes})
    before = started_at_rest(fleet)
    # What changes reports, but nothing that a container gets.
    fleet.hold("all", "n1", 1)
    fleet.wait_held("all")
    assert not [pod for pod in fleet.get("pods", "-A")["items"] if "proof" in pod["metadata"]["name"]]
    fleet.check()
    fleet.wait_quiet()
    assert {name: started(fleet, name) for name in fleet.nodes} == before
    fleet.cluster.restart_engine(fleet.nodes["n4"].k)
    wait_for(lambda: started(fleet, "n4") > before["n4"], 120, "a container after the engine has started again")
    wait_toolkit(fleet, "n4", "passed", "a container opened")


def test_a_device_file_that_the_engine_does_not_give_to_containers_shows_on_the_node(installed, runtime):
    fleet = installed
    wait_condition(fleet, BROKEN, "True", "AllStepsPassed")
    runtime("drop")
    wait_condition(fleet, BROKEN, "False", "ToolkitFailed", PATIENCE)
    assert condition(fleet.get("node", BROKEN))["message"].startswith(f"toolkit: {MISSING} is not in the container: it was not injected")
    fleet.nodes[BROKEN].kill_agent()
    wait_toolkit(fleet, BROKEN, "failed", f"^{MISSING} is not in the container: it was not injected$")
    assert condition(fleet.get("node", BROKEN))["status"] == "False"
    fleet.wait_advertised(60)  # the kubelet has its devices all the same
    runtime("")
    wait_condition(fleet, BROKEN, "True", "AllStepsPassed", PATIENCE)
    wait_toolkit(fleet, BROKEN, "passed", "a container opened")
    assert all(condition(fleet.get("node", name))["status"] == "True" for name in fleet.nodes)


def test_neither_a_killed_agent_nor_a_kubelet_that_ends_the_container_makes_a_verdict(installed, runtime):
    """The kubelet ends a sandbox that is no pod's within some seconds: one whose container starts slowly, or whose agent is gone."""
    fleet = installed
    wait_condition(fleet, BROKEN, "True", "AllStepsPassed")
    before = started(fleet, BROKEN)
    runtime("slow")
    wait_for(lambda: started(fleet, BROKEN) > before, 120, "a container to be on its way")
    begin = time.time()
    fleet.nodes[BROKEN].kill_agent()
    wait_toolkit(fleet, BROKEN, "passed", "no container tried it: |a container opened")
    fleet.nodes[BROKEN].run("rm", MODE)
    wait_toolkit(fleet, BROKEN, "passed", "a container opened")
    wait_for(lambda: not left(fleet, BROKEN), 60, "nothing to be left", lambda: left(fleet, BROKEN))
    written = conditions_written(fleet, begin)
    assert not written, Audit.told(written, begin)
    fleet.check()


def test_a_kubelet_that_removes_the_container_removes_nothing_but_its_log(installed, runtime):
    """It removes all files whose path begins with that of the log (containerLogManager.Clean). The agent is stopped meanwhile: it would remove the sandbox itself."""
    fleet, node = installed, installed.nodes[BROKEN]
    wait_condition(fleet, BROKEN, "True", "AllStepsPassed")
    runtime("mute")
    for _ in range(5):  # the kubelet kills an agent that it has not heard of for half a minute
        wait_for(lambda: answering(fleet, BROKEN), PATIENCE, "a container that runs")
        agent = node.agent()
        os.kill(agent, signal.SIGSTOP)
        removed, before = removed_by_kubelet(fleet, BROKEN), entries(fleet, BROKEN)
        wait_for(lambda: agent not in node.agents() or removed_by_kubelet(fleet, BROKEN) > removed, 120, "the kubelet to remove the container")
        if agent in node.agents():
            break
    after = entries(fleet, BROKEN)
    os.kill(agent, signal.SIGKILL)
    assert LOG in before[STATE]
    assert after == before | {STATE: before[STATE] - {LOG}}
    node.run("rm", MODE)
    wait_toolkit(fleet, BROKEN, "passed", "a container opened")
    wait_for(lambda: not left(fleet, BROKEN), 60, "nothing to be left", lambda: left(fleet, BROKEN))


@pytest.mark.timeout(1500)
def test_a_container_that_never_starts_with_the_devices_shows_on_the_node(installed, runtime):
    """As with a hook that hangs."""
    fleet = installed
    wait_condition(fleet, BROKEN, "True", "AllStepsPassed")
    runtime("hang")
    wait_condition(fleet, BROKEN, "False", "ToolkitFailed", 2 * PATIENCE)
    assert condition(fleet.get("node", BROKEN))["message"].startswith("toolkit: a container with the devices does not end within 30 s; one without them does")
    runtime("")
    wait_condition(fleet, BROKEN, "True", "AllStepsPassed", PATIENCE)


def test_the_runtime_handler_of_pods_without_cdi_starts_the_container_where_it_is_penstocks(installed):
    fleet, node = installed, installed.nodes[WITHOUT_CDI]
    missing = r"\(without a runtime handler: the engine has no runtime handler nvidia that is (/\S+)\)$"
    wait_toolkit(fleet, WITHOUT_CDI, "passed", missing)
    program, before = re.search(missing, toolkit(fleet, WITHOUT_CDI)["reason"])[1], node.run("cat", CONTAINERD).stdout
    node.run("test", "-x", program)
    runtimes = '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia'
    added = f'{runtimes}]\n  runtime_type = "io.containerd.runc.v2"\n{runtimes}.options]\n  BinaryName = "{program}"\n'
    try:
        node.run("sh", "-c", f"cat > {CONTAINERD}", input=before + added)
        fleet.cluster.restart_engine(node.k)
        wait_toolkit(fleet, WITHOUT_CDI, "passed", r"a container opened 0 device files, and may open [1-9]\d* that no driver serves \(by the runtime handler nvidia\)$")
        wait_for(lambda: not left(fleet, WITHOUT_CDI), 60, "nothing to be left", lambda: left(fleet, WITHOUT_CDI))
    finally:
        node.run("sh", "-c", f"cat > {CONTAINERD}", input=before)
        fleet.cluster.restart_engine(node.k)
    wait_toolkit(fleet, WITHOUT_CDI, "passed", missing)
