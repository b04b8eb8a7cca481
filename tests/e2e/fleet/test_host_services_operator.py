"""Services of the host that a ClusterPolicy's ConfigMap names are stopped while their GPU is divided by the Node's label. The nodes have no service manager: a replacement of
systemctl is first on the agents' PATH, and runs on the node as the real one would."""
import json
import sys

import pytest
from actors import wait_for
from fleet import NAMESPACE, ROOT, merged
from operators import NATIVE, cluster_policy
from test_mig_fleet import ask, wait_layout

NODE, SERVICE, OTHER, HOME, CLIENTS = "n4", "nvidia-dcgm.service", "other.service", "/opt/services", "our-gpu-clients"
PROGRAM = ROOT / "tests/support/service_manager.py"
PATH = {"name": "PATH", "value": f"{HOME}/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
NATIVE_WITH_PATH = NATIVE | {"spec": merged(NATIVE["spec"], {"agent": {"env": [PATH]}})}


class Services:
    """The services of one node: NVIDIA's host engine has its GPU open, and another service, too."""

    def __init__(self, node):
        self.node = node
        self.python(f"manager = ServiceManager(Path('{HOME}')); [manager.add(name, [Path('{HOME}/dev/nvidia0')]) for name in ('{SERVICE}', '{OTHER}')]")

    def python(self, text: str) -> str:
        paths = [str(PROGRAM.parent), *(path for path in sys.path if path)]
        return self.node.run(sys.executable, "-B", "-c", f"import sys; sys.path[:0] = {paths!r}; from pathlib import Path; from service_manager import ServiceManager; {text}").stdout

    def of(self, what: str):
        return json.loads(self.python(f"import json; manager = ServiceManager(Path('{HOME}'), Path(Path('{HOME}/groups').read_text())); print(json.dumps({what}))"))

    def asked(self) -> list[str]:
        return self.of("manager.asked()")

    def end(self):
        self.of("manager.end()")
        self.node.run("rm", "-rf", HOME)


@pytest.fixture
def services(fleet):
    services = Services(fleet.nodes[NODE])
    yield services
    services.end()


def test_the_services_of_a_cluster_policys_config_map_are_stopped_for_a_division_and_started_again(operator, services, fleet):
    clients = f"version: v1\nsystemd-services: [{SERVICE}, nvsm.service]\n"
    operator.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CLIENTS, "namespace": NAMESPACE}, "data": {"clients.yaml": clients}},
                   # Of the same name elsewhere: nobody reads it.
                   {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CLIENTS, "namespace": "default"},
                    "data": {"clients.yaml": f"version: v1\nsystemd-services: [{OTHER}]\n"}},
                   NATIVE_WITH_PATH, cluster_policy(mig={"strategy": "single"}, migManager={"gpuClientsConfig": {"name": CLIENTS}}))
    operator.wait_state("ready", 240)
    fleet.wait_offered()
    before = services.of(f"[manager.pid('{SERVICE}'), manager.pid('{OTHER}')]")
    assert services.asked() == []
    ask(fleet, "all-1g.5gb")
    wait_layout(fleet, "success", gpu=7)
    wait_for(lambda: services.asked() == [f"stop {SERVICE}", f"start {SERVICE}"], 60, "the service to be stopped once and started again",
             lambda: (services.asked(), fleet.nodes[NODE].status()["layout"], fleet.events(NODE)))
    after = services.of(f"[manager.pid('{SERVICE}'), manager.pid('{OTHER}')]")
    assert after[0] not in (0, before[0]) and after[1] == before[1], "only what the ConfigMap of the operator's namespace lists"
    wait_for(lambda: {"ServiceStopped", "ServiceStarted"} <= {event["reason"] for event in fleet.events(NODE)}, 60, "the Events", lambda: fleet.events(NODE))
    ask(fleet, "all-disabled")
    wait_layout(fleet, "success", gpu=1)
    wait_for(lambda: services.asked()[2:] == [f"stop {SERVICE}", f"start {SERVICE}"], 60, "the same for the way back", services.asked)
    ask(fleet, None)
    fleet.kubectl("delete", "configmap", "-n", "default", CLIENTS)
