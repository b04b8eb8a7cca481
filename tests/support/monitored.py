"""A fleet on one machine: agents on simulated machines, each with a kubelet and a page of its own, and who scrapes them. Says nothing about
what should be true; the tests do."""
import shutil
import socket
import subprocess
import tempfile
import urllib.parse
from pathlib import Path

from node import Node, wait_until
from prometheus import Prometheus, fetch

GPU = "nvidia.com/gpu"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Kubelet:
    """The program pretended-kubelet (tests/integration): gives devices to pods when it is told to."""

    def __init__(self, home: Path, programs: Path):
        self.dir = home / "kubelet"
        self.dir.mkdir()
        self.process = subprocess.Popen([programs.parent / "tests/pretended-kubelet", self.dir], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1)

    def _do(self, *words) -> list[str]:
        self.process.stdin.write(" ".join(urllib.parse.quote(str(word), safe="") for word in words) + "\n")
        verdict, *rest = self.process.stdout.readline().split()
        assert verdict == "ok", f"{words}: {verdict} {' '.join(rest)}"
        return rest

    def start(self, namespace: str, pod: str, count: int = 1, resource: str = GPU, container: str = "main") -> list[str]:
        """Returns the ids that the pod got."""
        return self._do("start", namespace, pod, container, resource, count)

    def end(self, namespace: str, pod: str):
        self._do("end", namespace, pod)

    def stop(self):
        self.process.stdin.close()
        self.process.wait(30)


class Monitored(Node):
    """A simulated machine with an agent whose page is scraped, and a kubelet."""

    def __init__(self, home: Path, programs: Path, machine: str, name: str, config: str = "", **options):
        self.devices, self.page = {"empty": 0, "mixed": 3, "t4-x1": 1, "a100-40gb-x1": 1, "pair.yaml": 2}.get(Path(machine).name, 8), f"127.0.0.1:{free_port()}"
        self.kubelet_program = Kubelet(home, programs)
        super().__init__(home, programs, machine, config, listen=self.page, name=name, kubelet=self.kubelet_program.dir, **options)

    def start_agent(self, wrapper: tuple = (), devices: int | None = None):
        try:
            super().start_agent(wrapper, self.devices if devices is None else devices)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log()[-3000:]}") from None

    def metrics(self) -> str:
        return fetch(f"http://{self.page}/metrics")

    def end(self):
        self.kubelet_program.stop()
        super().end()


class Fleet:
    """Machines by name, and `others`, which are programs or have a stop(). Everything ends with it."""

    def __init__(self, programs: Path):
        self.programs, self.nodes, self.others = programs, {}, []
        self.home = Path(tempfile.mkdtemp(prefix="penstock-fleet-"))  # short: sockets lie in it
        self.home.chmod(0o755)

    def add(self, name: str, machine: str, config: str = "", **options) -> Monitored:
        (self.home / name).mkdir()
        (self.home / name).chmod(0o755)
        self.nodes[name] = Monitored(self.home / name, self.programs, machine, name, config, **options)
        self.nodes[name].start_agent()
        return self.nodes[name]

    def node_exporter(self) -> str:
        """Starts the machine's own; returns its address."""
        address = f"127.0.0.1:{free_port()}"
        with open(self.home / "node-exporter.log", "wb") as log:
            process = subprocess.Popen(["prometheus-node-exporter", f"--web.listen-address={address}"], stdout=log, stderr=log,
                                       stdin=subprocess.DEVNULL)
        self.others.append(process)

        def answers() -> bool:
            try:
                return "node_uname_info" in fetch(f"http://{address}/metrics")
            except OSError:
                return False
        wait_until(answers, "node_exporter to answer", 30)
        return address

    def prometheus(self, jobs: list[dict], rules: list[Path] = (), **options) -> Prometheus:
        self.others.append(Prometheus(self.home / f"prometheus-{len(self.others)}", jobs, rules, **options))
        return self.others[-1]

    def end(self):
        for other in reversed(self.others):
            if isinstance(other, subprocess.Popen):
                other.terminate()
                other.wait(30)
            else:
                other.stop()
        for node in self.nodes.values():
            node.end()
        shutil.rmtree(self.home, ignore_errors=True)
