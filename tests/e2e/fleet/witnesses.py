"""Independent observers with timestamps: the API server's audit log, a watch on the nodes, the kubelet's own list. None of them uses Penstock."""
import json
import subprocess
import threading
import time
from collections import Counter
from datetime import datetime
from pathlib import Path

from api import Api, Watch
from cluster import Cluster
from inside import LEAST

# Records each request of our service accounts, and each write to nodes: one line on arrival, one on the response.
AUDIT_POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [ResponseStarted]
rules:
- {level: Metadata, userGroups: ["system:serviceaccounts:penstock", "system:serviceaccounts:gpu-operator"]}
- {level: Metadata, verbs: [patch, update], resources: [{group: "", resources: [nodes, nodes/status]}]}
- {level: None}
"""
OURS = "system:serviceaccount:penstock:"
WRITES = {"create", "update", "patch", "delete", "deletecollection"}


class Audit:
    """Requests to the API server, from its audit log; each part of the log is read once."""

    def __init__(self, log: Path):
        self.log, self.read, self.lock = log, 0, threading.Lock()
        self.received: list[tuple[float, str, dict]] = []  # time, user, request
        self.answered: list[dict] = []  # patches, with the codes of their answers
        self.ended: set[str] = set()  # watches, by their ids

    def _follow(self):
        with self.lock:
            if not self.log.exists():
                return
            with open(self.log, "rb") as log:
                log.seek(self.read)
                lines = log.read().rpartition(b"\n")[0]  # an incomplete line is read next time
            self.read += len(lines) + 1 if lines else 0
            for line in lines.splitlines():
                if b'"RequestReceived"' in line:
                    event = json.loads(line)
                    at = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
                    self.received.append((at, event["user"]["username"], event))
                elif b'"verb":"patch"' in line:
                    self.answered.append(json.loads(line))
                elif b'"verb":"watch"' in line:
                    self.ended.add(json.loads(line)["auditID"])

    def between(self, begin: float, end: float | None = None, who: str = OURS) -> list[dict]:
        """Requests that arrived in that interval, in seconds since 1970, of users whose name starts with that prefix."""
        self._follow()
        return [event for at, whose, event in self.received if begin <= at <= (end or time.time()) and whose.startswith(who)]

    def all(self) -> list[dict]:
        """Every request, and every answered patch with its code."""
        self._follow()
        return [*(event for _, _, event in self.received), *self.answered]

    def writes(self, begin: float, end: float | None = None, who: str = OURS) -> list[dict]:
        return [event for event in self.between(begin, end, who) if event["verb"] in WRITES]

    def watches(self, begin: float, end: float | None = None, who: str = OURS) -> list[dict]:
        """Those that were asked for in that interval and have not ended, as far as one API server was there meanwhile: one that is killed ends none."""
        return [event for event in self.between(begin, end, who) if event["verb"] == "watch" and event["auditID"] not in self.ended]

    @staticmethod
    def told(events: list[dict], begin: float) -> str:
        """Time since the beginning, request and source address of each event."""
        return "; ".join(f"{datetime.fromisoformat(event['requestReceivedTimestamp']).timestamp() - begin:.1f} s: {event['verb']} "
                         f"{event['requestURI']} from {event['sourceIPs'][0]}" for event in events[:20])


def summed(events: list[dict]) -> str:
    """"5 watch nodes, 4 patch nodes/status"."""
    def what(event):
        reference = event.get("objectRef", {})
        kind = "/".join(filter(None, (reference.get("resource", event["requestURI"]), reference.get("subresource"))))
        return f"{event['verb']} {kind}"

    return ", ".join(f"{count} {name}" for name, count in Counter(map(what, events)).most_common())


class NodeWatch(Watch):
    """The Node objects, each with its time of arrival."""

    def __init__(self, api: Api):
        super().__init__(api, "nodes")

    @property
    def nodes(self) -> dict[str, dict]:
        return self.objects

    def wait(self, predicate, deadline: float, what: str) -> float:
        """Waits until the nodes satisfy the predicate; returns the time, in seconds since 1970."""
        deadline = max(deadline, LEAST)
        with self.changed:
            if self.changed.wait_for(lambda: predicate(self.nodes), deadline):
                return self.at
            shown = {name: {"labels": {key: value for key, value in node["metadata"]["labels"].items() if "nvidia" in key},
                            "allocatable": {key: value for key, value in node["status"].get("allocatable", {}).items() if "/" in key}}
                     for name, node in self.nodes.items()}
        raise AssertionError(f"gave up after {deadline} s waiting for {what}; the nodes: {json.dumps(shown, indent=1)}")


class KubeletList(threading.Thread):
    """The number of devices of a resource in a node's kubelet, queried every 20 ms, also after a reboot of the node; -1 while the kubelet does not answer."""

    def __init__(self, cluster: Cluster, node: int, resource: str):
        super().__init__(daemon=True)
        self.cluster, self.node, self.resource, self.stopped = cluster, node, resource, False
        self.seen: list[tuple[float, int]] = []
        self.process = self._ask()
        self.start()

    def _ask(self) -> subprocess.Popen:
        # While a node boots, its mount namespace still shows the files of n1, including n1's kubelet. nsenter remains the parent, so the query ends with it.
        own = self.cluster.dir / f"n{self.node}/kubelet"
        ask = 'test /var/lib/kubelet -ef "$1" && exec setpriv --pdeathsig KILL kubelet-peer changes "$2"'
        command = [*self.cluster.entering(self.node), "sh", "-c", ask, "sh", own, self.resource]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True)

    def run(self):
        while not self.stopped:
            for line in self.process.stdout:
                at, count = line.split()
                self.seen.append((float(at), int(count)))
            self.process.wait()
            time.sleep(0.05)  # the node boots
            self.process = self._ask()
        self.process.kill()

    def until(self, count: int, deadline: float = 120) -> float:
        """Waits until the kubelet has so many devices; returns the time, in seconds since 1970."""
        end = time.monotonic() + max(deadline, LEAST)
        while not (self.seen and self.seen[-1][1] == count):
            assert time.monotonic() < end, f"gave up after {deadline} s waiting for {count} at the kubelet: {self.seen[-10:]}"
            time.sleep(0.01)
        return self.seen[-1][0]

    def stop(self):
        self.stopped = True
        self.process.kill()
        self.join(5)

    def counts(self) -> set[int]:
        """Stops the queries; returns all numbers seen."""
        self.stop()
        return {count for _, count in self.seen}

    def longest_without(self, count: int) -> float:
        """Stops the queries; returns the longest time, in seconds, with fewer than `count` devices."""
        end = time.time()
        self.stop()
        times = [*self.seen, (end, count)]
        return max((later - at for (at, had), (later, _) in zip(times, times[1:]) if had < count), default=0.0)
