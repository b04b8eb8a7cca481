"""A node with AMD's GPUs that change their compute mode, in a cluster and with a kubelet. Contains no assertions about the programs under test, except that a state is
reached. Needs root, to mount the files that answer."""
import json
from pathlib import Path

from amd import Amd, profile
from api_server import ApiServer
from monitored import Kubelet
from node import Node, wait_until

NODE = "/api/v1/nodes/n1"
WISH, STATE = "dcm.amd.com/gpu-config-profile", "dcm.amd.com/gpu-config-profile-state"
AGAIN = "dcm.amd.com/apply-gpu-config-profile"
CHANGED = 240  # seconds for a change of eight GPUs, at each of which the tree has 4,000 new files, on a machine that is busy otherwise


class Switching:
    """A node with AMD's GPUs in a cluster, and with a kubelet."""

    def __init__(self, node: Node, programs: Path, traced: bool = False, reloads: str = "never", strategy: str = "single", **machine):
        self.api, self.kubelet = ApiServer(node.home), Kubelet(node.home, programs)
        self.node, self.file = node, node.home / "config.json"
        self.put()
        node.name, node.kubelet = "n1", self.kubelet.dir
        node.config.write_text(f"{node.config.read_text()}cluster: {{kubeconfig: {self.api.kubeconfig}}}\nparts: {{modeProfiles: {self.file}, reloadDriver: {reloads}, strategy: {strategy}}}\n")
        self.write(cpx=profile(("CPX", 8)), spx=profile(("SPX", 8)), some=profile(("CPX", 2), ("DPX", 1), skipped=(0, 3, 5, 6, 7)), many=profile(("CPX", 9)))
        self.amd = Amd(node.root, answers=True, **machine)
        if reloads == "idle":
            self.amd.modprobe()
        tracer = ("strace", "-D", "-ff", "--seccomp-bpf", "-s", "300", "-e", "trace=open,openat,openat2", "-o", node.home / "trace") if traced else ()
        node.start_agent(wrapper=tracer, devices=16)

    def write(self, **profiles: dict):
        beside = self.file.with_name("new")
        beside.write_text(json.dumps({"gpu-config-profiles": profiles}))
        beside.rename(self.file)

    def put(self, **labels: str):
        self.api.put(NODE, "Node", metadata={"labels": labels})

    def wish(self, name: str):
        self.put(**{WISH: name})

    def state(self) -> str | None:
        """The label as written last."""
        written = [body for method, path, body in list(self.api.writes) if path == NODE and "labels" in body.get("metadata", {})]
        return written[-1]["metadata"]["labels"].get(STATE) if written else None

    def events(self) -> list[str]:
        return [body["reason"] for _, path, body in list(self.api.writes) if path.endswith("/events")]

    def warnings(self) -> list[str]:
        """Those among the Events; others may be written after them that were there before."""
        return [body["reason"] for _, path, body in list(self.api.writes) if path.endswith("/events") and body.get("type") == "Warning"]

    def layout(self) -> dict:
        return (self.node.report() or {}).get("layout", {})

    def reason(self) -> str:
        """Why the layout is not there; while it is tried again there is none."""
        return wait_until(lambda: self.layout().get("reason"), "the reason", CHANGED, seen=self.layout)

    def until(self, state: str):
        wait_until(lambda: self.state() == state, f"{STATE}={state}", CHANGED, seen=lambda: (self.state(), self.layout(), self.amd.written, self.node.log()[-3000:]))

    def end(self):
        """Before the machine is removed, in which files are mounted."""
        self.kubelet.stop()
        self.node.kill_agent()
        self.api.down()
        self.amd.close()
