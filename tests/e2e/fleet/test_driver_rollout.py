"""Driver containers by the operator on four nodes: three without a driver, which two NVIDIADrivers divide, and one with a driver of its host. Upgrades, as labels of
the nodes show them, and what goes wrong in them."""
import json
import time

from actors import GPU, wait_for
from driver_containers import REPOSITORY, ROOT_OF_DRIVER, provide
from driver_rollouts import BARE, NEW, OLD, ORDER, OWNER, POOL, SIMULATED, STATE, SYSTEM, idle_pod
from fleet import ACCELERATORS, NAMESPACE
from operators import OPERATOR, cluster_policy
from witnesses import OURS as AGENTS_TOO


def test_each_node_gets_the_driver_that_selects_it(rollout, fleet, measure):
    """Walkthrough G (1) and (2)."""
    rollout.apply("blue", OLD, "blue")
    rollout.apply("green", NEW, "green")
    with measure("NVIDIADrivers: three nodes have their drivers") as it:
        rollout.operator.apply(SIMULATED, cluster_policy(driver={"useNvidiaDriverCRD": True}))
        rollout.wait_versions(n1="host 550.54.15", n2=f"container {OLD}", n3=f"container {OLD}", n4=f"container {NEW}")
        it.done = time.time()
    for name in ("blue", "green"):
        rollout.operator.wait_state("ready", kind="nvidiadrivers", name=name)
    rollout.operator.wait_state("ready")
    assert {node: fleet.labels(node).get(OWNER) for node in fleet.nodes} == {"n1": None, "n2": "blue", "n3": "blue", "n4": "green"}
    wait_for(lambda: {node: fleet.labels(node).get("nvidia.com/gpu.deploy.driver") for node in fleet.nodes} == {"n1": "pre-installed"} | dict.fromkeys(BARE, "true"),
             60, "the marks of the nodes", rollout.told)
    pod = rollout.driver_pods()["n3"]
    [container] = pod["spec"]["containers"]
    assert container["image"] == f"{REPOSITORY}/driver:{OLD}-{SYSTEM}" and container["resources"]["limits"] == {"memory": "1Gi"}
    fleet.wait_advertised(60)
    wait_for(lambda: set(rollout.states().values()) == {"upgrade-done"}, 60, "the nodes to be done", rollout.told)


def test_at_rest_nothing_is_written(rollout):
    rollout.operator.wait_quiet(15, AGENTS_TOO)


def test_a_changed_driver_reaches_only_its_nodes_one_by_one(rollout, fleet, measure):
    """Walkthrough G (3), with pods that hold GPUs and one that holds none."""
    fleet.deploy("holder", "n3", 1)
    fleet.create(idle_pod("bystander", "n3"))
    fleet.wait_deployed("holder")
    wait_for(lambda: fleet.ready("bystander"), 60, "the bystander to run")
    bystander = fleet.get("pod", "bystander")["metadata"]["uid"]
    [holder] = fleet.get("pods", "-l", "app=holder", "--field-selector", "status.phase=Running")["items"]  # one that was rejected stays
    before = {node: pod["metadata"]["uid"] for node, pod in rollout.driver_pods().items()}
    for node in ("n2", "n3"):
        rollout.bare[node].wish(seconds=5)  # so that each is seen while it loads its driver
    with measure("a driver of two nodes is upgraded") as it, rollout.watched() as (seen, most):
        rollout.apply("blue", NEW, "blue")
        rollout.wait_versions(n2=f"container {NEW}", n3=f"container {NEW}", n4=f"container {NEW}")
        wait_for(lambda: set(rollout.states().values()) == {"upgrade-done"}, 120, "the nodes to be done", rollout.told)
        it.done = time.time()
    for node in ("n2", "n3"):
        rollout.bare[node].wish()
        assert seen[node] == ["upgrade-done", *ORDER], seen
    assert seen["n4"] == ["upgrade-done"] and most[0] <= 1, (seen, most)
    after = {node: pod["metadata"]["uid"] for node, pod in rollout.driver_pods().items()}
    assert after["n4"] == before["n4"] and not {after["n2"], after["n3"]} & {before["n2"], before["n3"]}
    assert fleet.get("pod", "bystander")["metadata"]["uid"] == bystander, "a pod without a GPU was evicted"
    fleet.wait_deployed("holder")
    assert holder["metadata"]["uid"] not in {pod["metadata"]["uid"] for pod in fleet.get("pods", "-l", "app=holder")["items"]}
    assert not any("unschedulable" in node["spec"] for node in fleet.get("nodes")["items"])
    rollout.operator.wait_state("ready", kind="nvidiadrivers", name="blue")
    assert {rollout.bare[node].module() for node in BARE} == {NEW}


def test_a_pod_that_may_not_be_evicted_is_named_and_keeps_its_driver(rollout, fleet):
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "holder", "namespace": "default"},
              "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "holder"}}}}
    [holder] = fleet.get("pods", "-l", "app=holder", "--field-selector", "status.phase=Running")["items"]  # one that was rejected stays
    name = holder["metadata"]["name"]

    def condition() -> dict:
        return rollout.operator.condition("Ready", "nvidiadrivers", "blue")

    def said() -> bool:
        """The pod is named before its eviction is refused; the refusal is part of the message from then on."""
        now = condition()
        return now["reason"] == "DriverNotReady" and f"default/{name}" in now["message"] and "disruption budget" in now["message"]
    rollout.operator.apply(budget)
    try:
        rollout.apply("blue", OLD, "blue")
        wait_for(said, 120, "the pod and the refusal to be named", rollout.told)
        assert rollout.versions()["n3"] == f"container {NEW}", "its driver was replaced below a pod"
        assert fleet.get("pod", name)["metadata"]["uid"] == holder["metadata"]["uid"]
    finally:
        fleet.kubectl("delete", "poddisruptionbudget", "holder")  # it would hold up the drivers of all later scenarios
    rollout.wait_versions(n2=f"container {OLD}", n3=f"container {OLD}")
    wait_for(lambda: set(rollout.states().values()) == {"upgrade-done"}, 120, "the nodes to be done", rollout.told)


def test_an_operator_that_is_killed_in_an_upgrade_goes_on(rollout, fleet):
    before = {node: pod["metadata"]["uid"] for node, pod in rollout.driver_pods().items()}
    rollout.apply("blue", NEW, "blue")
    wait_for(lambda: set(rollout.states().values()) & {"pod-deletion-required", "pod-restart-required"}, 60, "an upgrade to have begun", rollout.told)
    fleet.kubectl("delete", "pod", "-n", NAMESPACE, "-l", f"app={OPERATOR}", "--grace-period=0", "--force")
    rollout.wait_versions(n2=f"container {NEW}", n3=f"container {NEW}")
    wait_for(lambda: set(rollout.states().values()) == {"upgrade-done"}, 120, "the nodes to be done", rollout.told)
    after = {node: pod["metadata"]["uid"] for node, pod in rollout.driver_pods().items()}
    assert after["n4"] == before["n4"], "a node of another driver was touched"


def test_a_driver_that_does_not_load_is_said_and_goes_on_once_it_loads(rollout, fleet):
    rollout.bare["n2"].wish(fail="no kernel headers")
    rollout.apply("blue", OLD, "blue")
    wait_for(lambda: "no kernel headers" in json.dumps(rollout.operator.policy("nvidiadrivers", "blue").get("status")) or
             rollout.driver_pods().get("n2", {}).get("status", {}).get("containerStatuses", [{}])[0].get("restartCount", 0) > 0, 120, "the container to fail", rollout.told)

    def waiting() -> list[str]:
        drivers = rollout.operator.policy("nvidiadrivers", "blue").get("status", {}).get("drivers", [])
        return [one["name"] for driver in drivers for one in driver.get("waiting", [])]
    wait_for(lambda: "n2" in waiting(), 60, "the status to name the node", rollout.told)
    rollout.bare["n2"].wish()
    rollout.wait_versions(300, n2=f"container {OLD}", n3=f"container {OLD}")
    wait_for(lambda: set(rollout.states().values()) == {"upgrade-done"}, 120, "the nodes to be done", rollout.told)


def test_an_image_that_is_missing_for_the_next_kernel_is_said_before_the_node_boots(rollout, fleet):
    kernel = fleet.get("node", "n4")["status"]["nodeInfo"]["kernelVersion"]
    upcoming = "6.99.0-1-generic"

    def plain(release: str) -> str:  # as in names of images
        return release.replace("x86_64", "").replace("_", ".").rstrip(".").lower()

    def driver() -> dict:
        return rollout.operator.policy("nvidiadrivers", "green").get("status", {})

    def said() -> dict:
        return next((one for of in driver().get("drivers", []) for one in of.get("nextKernels", [])), {})

    def condition() -> dict:
        return next((one for one in driver().get("conditions", []) if one["type"] == "NextKernelImages"), {})

    def checks() -> list[dict]:
        return fleet.get("pods", "-n", NAMESPACE, "-l", "penstock.io/image-check")["items"]

    provide(fleet, NEW, f"{NEW}-{plain(kernel)}-{SYSTEM}")
    rollout.apply("green", NEW, "green", usePrecompiled=True)
    wait_for(lambda: plain(kernel) in rollout.driver_pods().get("n4", {}).get("spec", {}).get("containers", [{}])[0].get("image", ""), 180,
             "the precompiled driver", rollout.told)
    rollout.operator.wait_state("ready", kind="nvidiadrivers", name="green")
    node = rollout.bare["n4"].node
    node.run("mkdir", "-p", f"{ACCELERATORS}/boot", f"{ACCELERATORS}/lib/modules/{upcoming}")
    node.run("touch", f"{ACCELERATORS}/boot/vmlinuz-{upcoming}")
    try:
        wait_for(lambda: said().get("state") == "Missing", 120, "the image to be missing", rollout.told)
        assert said() | {"message": ""} == {"kernel": upcoming, "image": f"{REPOSITORY}/driver:{NEW}-{upcoming}-{SYSTEM}", "state": "Missing", "nodes": 1,
                                            "named": ["n4"], "message": ""}
        assert said()["message"].startswith(("ErrImagePull", "ImagePullBackOff")), said()
        assert condition()["status"] == "False" and upcoming in condition()["message"]
        assert driver()["state"] == "ready", "nothing waits for it"
        [pod] = checks()
        assert pod["spec"]["nodeName"] == "n4" and not any("hostPath" in volume for volume in pod["spec"].get("volumes", []))

        def events() -> list[str]:
            found = fleet.get("events", "-n", "default", "--field-selector", "involvedObject.kind=Node,involvedObject.name=n4,reason=NextKernelWithoutDriver")
            return [event["message"] for event in found["items"]]
        wait_for(lambda: any(upcoming in text and kernel in text for text in events()), 60, "the Event", events)
        provide(fleet, NEW, f"{NEW}-{upcoming}-{SYSTEM}")  # somebody builds it
        wait_for(lambda: said().get("state") == "Available" and condition().get("status") == "True", 300, "the image to be there", rollout.told)
        wait_for(lambda: not checks(), 60, "the pod that checked it to be gone", checks)
    finally:
        node.run("rm", "-rf", f"{ACCELERATORS}/boot", f"{ACCELERATORS}/lib/modules/{upcoming}")
    wait_for(lambda: not said() and not condition(), 120, "nothing to be said of it", rollout.told)


def test_a_deleted_driver_leaves_nothing_of_the_operator_on_its_nodes(rollout, fleet):
    rollout.operator.delete("nvidiadrivers", "blue")
    wait_for(lambda: not {"n2", "n3"} & set(rollout.driver_pods()), 120, "the driver's pods to be gone", rollout.told)
    for node in ("n2", "n3"):
        def left(node=node) -> list[str]:
            found = fleet.get("node", node)["metadata"]
            return [key for key in (*found["labels"], *found["annotations"]) if key in (STATE, OWNER, POOL) or "driver-upgrade." in key or key == "penstock.io/driver-upgrade"]
        wait_for(lambda left=left: not left(), 60, f"{node} to have nothing of the driver", left)
    assert rollout.driver_pods().keys() == {"n4"}
    assert fleet.get("node", "n4")["status"]["allocatable"][GPU] == "1"
    assert rollout.bare["n2"].node.run("test", "-d", ROOT_OF_DRIVER, check=False).returncode == 0
