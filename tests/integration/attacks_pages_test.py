"""What somebody without rights and credentials learns from the agent's pages, and what they can do to them."""
import hashlib
import json
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from node import PATIENCE, Node, wait_until  # noqa: E402
from webpages import fetch, where  # noqa: E402

SECRET = "hf_VERYSECRET"
TOKEN = "a-long-random-token"


@pytest.fixture
def make(request):
    """Makes a machine and its agent; all end with the test."""
    with tempfile.TemporaryDirectory(prefix="penstock-attacked-") as folder:
        made = []

        def make(config: str = "", machine: str = "t4-x1") -> Node:
            home = Path(folder, str(len(made)))
            home.mkdir()
            made.append(Node(home, request.config.getoption("--programs").resolve(), machine, config, listen="127.0.0.1:0"))
            made[-1].start_agent(devices=8 if machine == "dgx-a100" else 1)
            return made[-1]

        yield make
        for node in made:
            node.end()


def hold_with_a_secret(node: Node) -> int:
    """A process with a secret in its command line on the GPU, as the simulated driver tells."""
    program = node.hold(1, "sh", "-c", f"sleep 1000 # --hf-token={SECRET}")
    node.sim("set", "0", f"process={program.pid}:100:sh")
    return program.pid


def reads(node: Node, path: str, **fields) -> str:
    return fetch(where(node.log()) + path, **fields)


def test_pages_without_credentials_tell_no_command_line_and_no_process_id(make):
    node = make("telemetry: {interval: 1s}\n")
    pid = hold_with_a_secret(node)
    series = wait_until(lambda: [line for line in reads(node, "/metrics").splitlines() if line.startswith("accelerator_process_memory_used_bytes{")],
                        "the process's memory on the page", every=0.2)
    state = json.loads(reads(node, "/debug/state"))
    holder = state["devices"][0]["holders"][0]
    assert holder["user"] == "root" and holder["lease"] and holder["state"] == "held"
    assert holder["command"] == "" and holder["pids"] == [] and state["agentPid"] == 0
    assert len(series) == 1 and 'user="root"' in series[0] and float(series[0].split()[-1]) > 0
    for page in (reads(node, "/metrics"), reads(node, "/metrics", Accept="application/openmetrics-text"), reads(node, "/debug/state")):
        assert SECRET not in page and "sleep" not in page
        assert f'"{pid}"' not in page and "pid=" not in page and "command=" not in page
    assert SECRET in node.penstock("ps", "-o", "json").stdout, "root sees it"


def test_pages_tell_both_to_those_who_bring_credentials(make, tmp_path):
    web = tmp_path / "web.yaml"
    web.write_text(f"bearer_tokens: {{people: 'sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()}'}}\n")
    node = make(f"telemetry: {{interval: 1s}}\nhttp: {{webConfigFile: {web}}}\n")
    pid = hold_with_a_secret(node)
    bring = {"Authorization": f"Bearer {TOKEN}"}
    wait_until(lambda: f'pid="{pid}"' in reads(node, "/metrics", **bring), "the process on the page", every=0.2)
    assert SECRET in reads(node, "/metrics", **bring)
    state = json.loads(reads(node, "/debug/state", **bring))
    assert pid in state["devices"][0]["holders"][0]["pids"] and SECRET in state["devices"][0]["holders"][0]["command"]
