"""Another device plugin on the same node."""
from actors import wait_for
from inside import define


def test_another_plugin_for_the_resource_is_named_and_left_alone(agent, cluster, kubernetes, machine, request):
    agent.stop()
    define(cluster.dir / "n1", "other-plugin", ["kubelet-peer", "serve", "nvidia.com/gpu", "3"])
    cluster.start("other-plugin")
    request.addfinalizer(lambda: cluster.kill("other-plugin"))
    theirs = {f"someone-elses-{i}" for i in range(3)}
    wait_for(lambda: kubernetes.gpus_the_kubelet_has() == theirs, 60, "the other plugin's list at the kubelet")

    agent.start()
    allocator = wait_for(lambda: (allocator := agent.kubelet_allocator())["state"] == "stepped-back" and allocator, 60, "our plugin to step back")
    assert "someone-else" in allocator["reason"]
    assert kubernetes.gpus_the_kubelet_has() == theirs

    cluster.kill("other-plugin")
    wait_for(lambda: kubernetes.gpus_the_kubelet_has() == set(machine.minors()), 60, "our list, once the other has gone")
    wait_for(lambda: agent.kubelet_allocator()["state"] == "open", 30, "the agent to report that it serves")


def test_a_plugin_that_registers_over_ours_and_leaves_takes_no_devices_along(agent, cluster, kubernetes, machine, request):
    ours, theirs = set(machine.minors()), {f"someone-elses-{i}" for i in range(3)}
    wait_for(lambda: kubernetes.gpus_the_kubelet_has() == ours, 60, "our list at the kubelet")
    define(cluster.dir / "n1", "other-plugin", ["kubelet-peer", "serve", "nvidia.com/gpu", "3"])
    cluster.start("other-plugin")
    request.addfinalizer(lambda: cluster.kill("other-plugin"))
    wait_for(lambda: kubernetes.gpus_the_kubelet_has() == theirs, 30, "the other plugin's list at the kubelet")
    wait_for(lambda: agent.kubelet_allocator()["state"] == "stepped-back", 60, "the agent to step back")
    assert kubernetes.gpus_the_kubelet_has() == theirs

    cluster.kill("other-plugin")  # the kubelet does not end our stream, although it does not count its devices
    wait_for(lambda: kubernetes.gpus_the_kubelet_has() == ours, 60, "our list, once the other has gone")
    wait_for(lambda: agent.kubelet_allocator()["state"] == "open", 30, "the agent to serve again")
