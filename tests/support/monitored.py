"""A fleet on one machine: agents on simulated machines, each with its own kubelet and metrics page, and their scrapers. Contains no
assertions about the programs under test."""
import shutil
import re
import subprocess
import tempfile
import urllib.parse
from pathlib import Path

from node import PATIENCE, Node, wait_until
from prometheus import Prometheus, fetch
from sockets import address, open_socket

GPU = "nvidia.com/gpu"


class Refused(AssertionError):
    """The kubelet could not do what it was asked to do; the message is the agent's."""


class Kubelet:
    """The program pretended-kubelet (tests/integration), which allocates devices to pods on command."""

    def __init__(self, home: Path, programs: Path):
        self.dir = home / "kubelet"
        self.dir.mkdir()
        self.process = subprocess.Popen([programs.parent / "tests/pretended-kubelet", self.dir], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1)

    def _do(self, *words) -> list[str]:
        self.process.stdin.write(" ".join(urllib.parse.quote(str(word), safe="") for word in words) + "\n")
        verdict, *rest = self.process.stdout.readline().split()
        if verdict != "ok":
            raise Refused(f"{words}: {verdict} {' '.join(rest)}")
        return rest

    def start(self, namespace: str, pod: str, count: int = 1, resource: str = GPU, container: str = "main") -> list[str]:
        """Starts a pod; returns the ids of its devices."""
        return self._do("start", namespace, pod, container, resource, count)

    def take(self, namespace: str, pod: str, resource: str, ids: list[str], container: str = "main"):
        """Starts a pod with these devices, whatever their health: as the kubelet does with a list that is just being replaced."""
        self._do("take", namespace, pod, container, resource, *ids)

    def given(self) -> list[str]:
        """What the pod that was started last gets: variables, device files and mounts."""
        return self._do("given")

    def has(self, namespace: str, pod: str, container: str, resource: str, ids: list[str]):
        """Records devices that the pod got under an earlier agent."""
        self._do("has", namespace, pod, container, resource, *ids)

    def end(self, namespace: str, pod: str):
        self._do("end", namespace, pod)

    def healthy(self, count: int, resource: str = GPU):
        """Waits until this many devices of the resource are healthy."""
        self._do("healthy", resource, count)

    def told(self, resource: str = GPU) -> list[str]:
        """The devices that occurred in any list since the last call."""
        return self._do("told", resource)

    def steady(self, resource: str = GPU) -> list[str]:
        """The devices that were healthy in every list since the last call."""
        return self._do("steady", resource)

    def stop(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)


class OtherPlugin:
    """The program pretended-plugin (tests/integration) on a socket in a kubelet's folder: with a resource it serves devices of it, without it only answers."""

    def __init__(self, kubelet: Kubelet, programs: Path, socket: str, resource: str = "", count: int = 0, **options):
        registration = [resource, str(count)] if resource else []
        # Relative: another user may not be able to reach the folder by its path.
        self.process = subprocess.Popen([programs.parent / "tests/pretended-plugin", ".", socket, *registration], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, cwd=kubelet.dir / "device-plugins", **options)
        if self.process.stdout.readline() != "ok\n":
            raise Refused(f"{socket}: the plugin ended with {self.process.wait(PATIENCE)}")

    def leave(self):
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0


class Monitored(Node):
    """A simulated machine with a kubelet and an agent whose metrics page is scraped."""

    def __init__(self, home: Path, programs: Path, machine: str, name: str, config: str = "", **options):
        self.devices = {"empty": 0, "mixed": 3, "t4-x1": 1, "a100-40gb-x1": 1, "pair.yaml": 2}.get(Path(machine).name, 8)
        pages = open_socket()  # owned by the test, so that a restarted agent has the same address
        self.page = address(pages)
        self.kubelet_program = Kubelet(home, programs)
        super().__init__(home, programs, machine, config, listen="systemd:pages", name=name, kubelet=self.kubelet_program.dir,
                         sockets={"pages": pages}, **options)

    def start_agent(self, wrapper: tuple = (), devices: int | None = None):
        super().start_agent(wrapper, self.devices if devices is None else devices)

    def metrics(self) -> str:
        return fetch(f"http://{self.page}/metrics")

    def end(self):
        self.kubelet_program.stop()
        super().end()
        for one in self.sockets.values():
            one.close()


class Fleet:
    """Machines by name, and `others`: processes, or objects with a stop(). end() stops everything."""

    def __init__(self, programs: Path):
        self.programs, self.nodes, self.others = programs, {}, []
        self.home = Path(tempfile.mkdtemp(prefix="penstock-fleet-"))  # short, because socket paths have a length limit
        self.home.chmod(0o755)

    def add(self, name: str, machine: str, config: str = "", **options) -> Monitored:
        (self.home / name).mkdir()
        (self.home / name).chmod(0o755)
        self.nodes[name] = Monitored(self.home / name, self.programs, machine, name, config, **options)
        self.nodes[name].start_agent()
        return self.nodes[name]

    def node_exporter(self) -> str:
        """Starts the machine's node_exporter; returns its address."""
        said = self.home / "node-exporter.log"
        # The isolated machine has only the loopback interface, which dashboards exclude.
        subprocess.run(["ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth1"], check=True)
        with open(said, "wb") as log:
            process = subprocess.Popen(["prometheus-node-exporter", "--web.listen-address=127.0.0.1:0"], stdout=log, stderr=log,
                                       stdin=subprocess.DEVNULL)
        self.others.append(process)
        found = wait_until(lambda: re.search(r'msg="Listening on" address=(\S+)', said.read_text()), "node_exporter to listen",
                           seen=said.read_text)
        assert "node_uname_info" in fetch(f"http://{found[1]}/metrics")
        return found[1]

    def prometheus(self, jobs: list[dict], rules: list[Path] = (), **options) -> Prometheus:
        self.others.append(Prometheus(self.home / f"prometheus-{len(self.others)}", jobs, rules, **options))
        return self.others[-1]

    def end(self):
        for other in reversed(self.others):
            if isinstance(other, subprocess.Popen):
                other.terminate()
                other.wait(PATIENCE)
            else:
                other.stop()
        for node in self.nodes.values():
            node.end()
        shutil.rmtree(self.home, ignore_errors=True)
