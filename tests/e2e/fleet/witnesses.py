"""Who saw what, and when: the API server's audit log, a watch on the nodes, the kubelet's own list. None of it passes through Penstock."""
import json
import subprocess
import threading
import time
from collections import Counter
from datetime import datetime
from pathlib import Path

from cluster import Cluster

# Every request of our service accounts, and whoever writes to nodes: one line when it arrives, one when it is answered.
AUDIT_POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [ResponseStarted]
rules:
- {level: Metadata, userGroups: ["system:serviceaccounts:penstock"]}
- {level: Metadata, verbs: [patch, update], resources: [{group: "", resources: [nodes, nodes/status]}]}
- {level: None}
"""
OURS = "system:serviceaccount:penstock:"
WRITES = {"create", "update", "patch", "delete", "deletecollection"}


class Audit:
    """Requests to the API server, as its audit log has them."""

    def __init__(self, log: Path):
        self.log = log

    def between(self, begin: float, end: float | None = None, who: str = OURS) -> list[dict]:
        """Requests that arrived in that time, in seconds since 1970, of users whose name begins so."""
        found = []
        for line in self.log.read_text().splitlines() if self.log.exists() else []:
            if '"RequestReceived"' not in line or who not in line:
                continue
            event = json.loads(line)
            at = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
            if begin <= at <= (end or time.time()) and event["user"]["username"].startswith(who):
                found.append(event)
        return found

    def writes(self, begin: float, end: float | None = None, who: str = OURS) -> list[dict]:
        return [event for event in self.between(begin, end, who) if event["verb"] in WRITES]

    @staticmethod
    def told(events: list[dict], begin: float) -> str:
        """Who asked what, and how long after the beginning."""
        return "; ".join(f"{datetime.fromisoformat(event['requestReceivedTimestamp']).timestamp() - begin:.1f} s: {event['verb']} "
                         f"{event['requestURI']} from {event['sourceIPs'][0]}" for event in events[:20])

    def refused(self, begin: float) -> list[dict]:
        """Our requests that were answered 401 or 403."""
        return [event for line in self.log.read_text().splitlines() if '"ResponseComplete"' in line and OURS in line
                and (event := json.loads(line)).get("responseStatus", {}).get("code") in (401, 403)
                and datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp() >= begin]


def summed(events: list[dict]) -> str:
    """"5 watch nodes, 4 patch nodes/status"."""
    def what(event):
        reference = event.get("objectRef", {})
        kind = "/".join(filter(None, (reference.get("resource", event["requestURI"]), reference.get("subresource"))))
        return f"{event['verb']} {kind}"

    return ", ".join(f"{count} {name}" for name, count in Counter(map(what, events)).most_common())


class NodeWatch(threading.Thread):
    """The Node objects as a watch shows them, each with the moment when it came."""

    def __init__(self, cluster: Cluster):
        super().__init__(daemon=True)
        self.cluster, self.changed = cluster, threading.Condition()
        self.nodes: dict[str, dict] = {}
        self.at: float = 0
        self.stopped, self.process = False, None

    def run(self):
        while not self.stopped:
            self.process = subprocess.Popen([*self.cluster.entering(), "kubectl", "get", "--raw", "/api/v1/nodes?watch=1"],
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True)
            for line in self.process.stdout:
                event = json.loads(line)
                with self.changed:
                    self.at = time.time()
                    self.nodes[event["object"]["metadata"]["name"]] = event["object"]
                    self.changed.notify_all()
            self.process.wait()
            time.sleep(0.2)  # the API server is away

    def stop(self):
        self.stopped = True
        if self.process:
            self.process.kill()

    def wait(self, predicate, deadline: float, what: str) -> float:
        """Until the nodes satisfy it; returns when that was, in seconds since 1970."""
        with self.changed:
            if self.changed.wait_for(lambda: predicate(self.nodes), deadline):
                return self.at if predicate(self.nodes) else time.time()
            shown = {name: {"labels": {key: value for key, value in node["metadata"]["labels"].items() if "nvidia" in key},
                            "allocatable": {key: value for key, value in node["status"].get("allocatable", {}).items() if "/" in key}}
                     for name, node in self.nodes.items()}
        raise AssertionError(f"gave up after {deadline} s waiting for {what}; the nodes: {json.dumps(shown, indent=1)}")


class KubeletList(threading.Thread):
    """How many devices of a resource the kubelet of a node has, asked every 20 ms; -1 while it does not answer."""

    def __init__(self, cluster: Cluster, node: int, resource: str):
        super().__init__(daemon=True)
        self.process = subprocess.Popen([*cluster.entering(node), "kubelet-peer", "changes", resource], stdout=subprocess.PIPE,
                                        stdin=subprocess.DEVNULL, text=True)
        self.seen: list[tuple[float, int]] = []
        self.start()

    def run(self):
        for line in self.process.stdout:
            at, count = line.split()
            self.seen.append((float(at), int(count)))

    def until(self, count: int, deadline: float = 60) -> float:
        """Waits until there are so many; when that was, in seconds since 1970."""
        end = time.monotonic() + deadline
        while not (self.seen and self.seen[-1][1] == count):
            assert time.monotonic() < end, f"gave up after {deadline} s waiting for {count} at the kubelet: {self.seen[-10:]}"
            time.sleep(0.01)
        return self.seen[-1][0]

    def stop(self):
        self.process.kill()
        self.join(5)

    def longest_without(self, count: int) -> float:
        """Ends the asking; the longest time, in seconds, in which there were fewer than `count`."""
        end = time.time()
        self.stop()
        times = [*self.seen, (end, count)]
        return max((later - at for (at, had), (later, _) in zip(times, times[1:]) if had < count), default=0.0)
