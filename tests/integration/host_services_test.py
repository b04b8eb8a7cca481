"""Services of the host that hold GPUs are stopped while these are divided, and started again: after a success, a failure and a crash. Needs root, for the control groups by
which a process belongs to a service."""
import json
import os
import signal
from pathlib import Path

import pytest

from amd import profile
from mig_machine import modes, parts
from node import Node, wait_until
from service_manager import ServiceManager

DCGM, NVSM, IDLE, OTHER = "nvidia-dcgm.service", "nvsm.service", "idle.service", "other.service"
WHOLE, DIVIDED = {}, {str(gpu): ["3g.71gb"] * 2 for gpu in range(8)}

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def services(tmp_path, monkeypatch):
    manager = ServiceManager(tmp_path / "services")
    monkeypatch.setenv("PATH", f"{manager.home}/bin:{os.environ['PATH']}")
    yield manager
    manager.end()


class Host:
    """A machine with eight GPUs, on which a service has all of them open, another two of them, and a third one none; and one that is not listed has all."""

    def __init__(self, node: Node, services: ServiceManager):
        self.node, self.services = node, services
        gpus = [node.home / f"host/dev/nvidia{gpu}" for gpu in range(8)]
        services.add(NVSM, gpus[:2])
        services.add(DCGM, gpus)
        services.add(IDLE, [node.home / "host/dev/null"])
        services.add(OTHER, gpus)
        self.listed = node.home / "clients.yaml"
        self.names(NVSM, DCGM, IDLE, "missing.service")
        self.plain = node.config.read_text()
        self.configure("all-disabled")
        node.start_agent()

    def names(self, *services: str):
        self.listed.write_text(f"version: v1\nsystemd-services: {json.dumps(services)}\n")

    def configure(self, layout: str):
        beside = self.node.config.with_name("new.yaml")
        beside.write_text(f"{self.plain}parts: {{clientServices: {self.listed}, defaultLayout: {layout}}}\n")
        beside.rename(self.node.config)

    def divide(self, layout: str = "all-3g.71gb"):
        """As the Node's label, where there is a cluster."""
        self.configure(layout)
        self.node.agent.send_signal(signal.SIGHUP)

    def layout(self) -> dict:
        return (self.node.report() or {}).get("layout", {})

    def until(self, state: str, name: str = "all-3g.71gb"):
        wait_until(lambda: (self.layout().get("name"), self.layout().get("state")) == (name, state), f"the layout to be {state}",
                   seen=lambda: (self.layout(), self.services.asked(), self.node.log()[-3000:]))

    def until_asked(self, line: str):
        wait_until(lambda: line in self.services.asked(), line, seen=lambda: (self.services.asked(), self.layout(), self.node.log()[-3000:]))

    def until_all_run(self):
        wait_until(lambda: self.kept() == [] and all(self.services.runs(one) for one in (DCGM, NVSM, IDLE, OTHER)), "all services to run",
                   seen=lambda: (self.kept(), self.services.asked(), self.node.log()[-3000:]))

    def kept(self) -> list[str]:
        file = self.node.state_dir / "services.json"
        return json.loads(file.read_text()).get("units", []) if file.exists() else []


@pytest.fixture
def host(make_node, services) -> Host:
    return Host(make_node(machine="dgx-h200"), services)


def test_services_that_hold_gpus_are_stopped_while_these_are_divided(host):
    host.services.hold()
    host.divide()
    host.until_asked(f"stop {NVSM}")
    wait_until(lambda: f"{NVSM} of the host is being stopped" in json.dumps(host.node.report()["devices"]), "what is waited for to be named",
               seen=lambda: host.node.report()["devices"])
    assert host.kept() == [NVSM, DCGM], "what is stopped is written down first"
    assert parts(host.node) == WHOLE and set(modes(host.node)) == {"Disabled"}, "no GPU changes before"
    host.services.go_on()
    host.until("success")
    host.until_all_run()
    assert parts(host.node) == DIVIDED
    asked = host.services.asked()
    assert asked[0] == f"stop {NVSM}" and asked[1] == f"stop {DCGM}" and asked[-2:] == [f"start {DCGM}", f"start {NVSM}"], asked
    assert not [line for line in asked if IDLE in line or OTHER in line], "nothing else is touched"


def test_after_a_division_that_fails_they_run_again(host):
    host.node.sim("fault", "0", "error", "nvmlDeviceSetMigMode", "999")
    host.divide()
    host.until("failed")
    host.until_all_run()
    assert f"stop {DCGM}" in host.services.asked()
    host.node.sim("heal", "0")
    host.until("success")
    host.until_all_run()


@pytest.mark.parametrize("moment", [f"stop {NVSM}", f"stop {DCGM}", "divided", f"start {DCGM}", f"start {NVSM}"])
def test_an_agent_that_is_killed_leaves_the_next_one_to_start_them(host, moment):
    """At each request to the service manager, and while GPUs are divided."""
    if moment == "divided":
        host.divide()
        wait_until(lambda: parts(host.node), "a GPU to be divided")
    else:
        host.services.hold()
        host.divide()
        while not any(line == moment for line in host.services.asked()):
            before = len(host.services.asked())
            host.services.go_on()
            wait_until(lambda: len(host.services.asked()) > before, moment, seen=lambda: (host.services.asked(), host.node.log()[-3000:]))
            host.services.hold()
    host.node.kill_agent()
    if (host.services.home / "hold").exists():
        host.services.go_on()
    host.node.launch_agent()
    host.until("success")
    host.until_all_run()
    assert parts(host.node) == DIVIDED


def test_a_service_that_cannot_be_stopped_or_started_is_reported_and_the_gpus_are_divided(host):
    broken = host.services.home / f"{DCGM}.broken"
    broken.touch()
    host.divide()
    host.until("success")
    wait_until(lambda: f"{DCGM} has " in host.node.log() and f"Job for {DCGM} failed" in host.node.log(), "what is not stopped to be named", seen=host.node.log)
    broken.unlink()
    host.until_all_run()


def test_what_the_node_needs_is_not_stopped_and_what_stops_with_a_service_is_started_again(host):
    gpus = [host.node.home / f"host/dev/nvidia{gpu}" for gpu in range(8)]
    host.services.add("kubelet.service", gpus)
    host.services.add("exporter.service")
    host.services.add("reader.service", gpus, required_by=("exporter.service",))
    host.names("kubelet.service", "reader.service")
    kubelet, exporter = host.services.pid("kubelet.service"), host.services.pid("exporter.service")
    host.divide()
    host.until("success")
    wait_until(lambda: host.kept() == [] and host.services.runs("reader.service") and host.services.runs("exporter.service"), "both to run again",
               seen=lambda: (host.services.asked(), host.kept()))
    assert host.services.pid("kubelet.service") == kubelet and host.services.pid("exporter.service") not in (0, exporter)
    assert "kubelet.service has " in host.node.log() and "the node needs it" in host.node.log()


def test_a_list_that_is_wrong_stops_nothing_and_says_where(host):
    host.names(DCGM, "/etc/systemd/system/x.service")
    host.divide()
    host.until("success")
    assert host.services.asked() == []
    assert f"{host.listed}:2:" in host.node.log() and "systemd-services[1]" in host.node.log()


def test_a_user_at_the_machine_decides_about_services(host):
    layout = host.node.home / "layout.yaml"
    layout.write_text("version: v1\nmig-configs: {mine: [{devices: [0], mig-enabled: true, mig-devices: {7g.141gb: 1}}]}\n")
    host.node.penstock("mig", "apply", "-f", layout)
    assert host.services.asked() == []


def test_the_services_of_amds_device_config_manager_are_stopped(services, switching):
    node = switching()
    files = [Path("/dev/kfd"), *(Path(f"/dev/dri/renderD{128 + gpu}") for gpu in range(8))]
    services.add("gpuagent.service", [node.node.home / f"host{file}" for file in files])
    services.add("amd-metrics-exporter.service")
    node.file.write_text(json.dumps({"gpu-config-profiles": {"cpx": profile(("CPX", 8))}, "gpuClientSystemdServices": {"names": ["amd-metrics-exporter", "gpuagent"]}}))
    node.wish("cpx")
    node.until("success")
    assert node.amd.modes == ["CPX"] * 8
    wait_until(lambda: services.runs("gpuagent.service") and services.asked()[-1:] == ["start gpuagent.service"], "the service to run again", seen=services.asked)
    assert services.asked()[0] == "stop gpuagent.service" and not [line for line in services.asked() if "exporter" in line]
