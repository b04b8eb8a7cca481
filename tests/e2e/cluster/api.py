"""Requests to a cluster's API server as its administrator, from outside the cluster's namespaces.
The connection is reused, so a request takes three milliseconds; starting kubectl takes a tenth of
a second of processor time."""
import contextlib
import ctypes
import http.client
import json
import os
import select
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path

CLONE_NEWNET = 0x40000000
SECONDS = 60  # the time limit of a request
CORE = "api/v1"
# For kubectl wait of a definition: with --for=condition it fails where there are no conditions yet.
ESTABLISHED = 'jsonpath={.status.conditions[?(@.type=="Established")].status}=True'
GROUPS = {"deployments": "apis/apps/v1", "replicasets": "apis/apps/v1",
          "daemonsets": "apis/apps/v1", "jobs": "apis/batch/v1",
          **dict.fromkeys(("roles", "rolebindings", "clusterroles", "clusterrolebindings"), "apis/rbac.authorization.k8s.io/v1"),
          "leases": "apis/coordination.k8s.io/v1", "networkpolicies": "apis/networking.k8s.io/v1",
          "poddisruptionbudgets": "apis/policy/v1",
          "nodestates": "apis/penstock.io/v1alpha1", "penstocks": "apis/penstock.io/v1alpha1",
          "clusterpolicies": "apis/nvidia.com/v1", "nvidiadrivers": "apis/nvidia.com/v1alpha1",
          "gpuclusters": "apis/nvidia.com/v1alpha1", "deviceconfigs": "apis/amd.com/v1alpha1",
          **dict.fromkeys(("validatingadmissionpolicies", "validatingadmissionpolicybindings"), "apis/admissionregistration.k8s.io/v1"),
          "endpointslices": "apis/discovery.k8s.io/v1", "runtimeclasses": "apis/node.k8s.io/v1",
          "servicemonitors": "apis/monitoring.coreos.com/v1", "customresourcedefinitions": "apis/apiextensions.k8s.io/v1"}
# Cluster-scoped kinds.
OF_THE_CLUSTER = {"runtimeclasses", "validatingadmissionpolicies", "validatingadmissionpolicybindings", "nodes", "namespaces", "clusterroles", "clusterrolebindings", "nodestates", "penstocks", "clusterpolicies", "nvidiadrivers", "gpuclusters", "customresourcedefinitions"}

# Kinds whose definitions a cluster may lack.
OPTIONAL = {"nodestates", "penstocks", "clusterpolicies", "nvidiadrivers", "gpuclusters", "deviceconfigs", "servicemonitors"}


class RequestFailed(RuntimeError):
    """A request that the API server rejected (`code`) or did not answer (0)."""

    def __init__(self, code: int, text: str):
        super().__init__(text)
        self.code = code


def plural(kind: str) -> str:
    if kind.endswith("ss"):
        return f"{kind}es"
    return kind if kind.endswith("s") else f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"


def path_of(kind: str, name: str = "", namespace: str = "default") -> str:
    """`namespace` "" means all namespaces."""
    kind = plural(kind.lower())
    within = f"/namespaces/{namespace}" if namespace and kind not in OF_THE_CLUSTER else ""
    return f"/{GROUPS.get(kind, CORE)}{within}/{kind}" + (f"/{name}" if name else "")


@contextlib.contextmanager
def network_of(process: Path) -> Iterator[None]:
    """Moves this thread into the network namespace of a process, given by its /proc folder: sockets
    created meanwhile stay in it."""
    libc = ctypes.CDLL(None, use_errno=True)

    def enter(file: int):
        if libc.setns(file, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    theirs = os.open(process / "ns/net", os.O_RDONLY)
    try:
        enter(theirs)
        try:
            yield
        finally:
            enter(own)
    finally:
        os.close(own)
        os.close(theirs)


class Connection(http.client.HTTPSConnection):
    def __init__(self, server: str, process: Callable[[], Path], context: ssl.SSLContext,
                 seconds: float | None):
        super().__init__(server, 6443, timeout=seconds, context=context)
        self.process, self.context = process, context

    def connect(self):
        with network_of(self.process()):
            plain = socket.socket()
        plain.settimeout(SECONDS)
        plain.connect((self.host, self.port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = self.context.wrap_socket(plain, server_hostname=self.host)
        self.sock.settimeout(self.timeout)

    def lost(self) -> bool:
        """Between requests the only event on a connection is its end."""
        return self.sock is None or bool(select.select([self.sock], [], [], 0)[0])


class Api:
    """`process`: the /proc folder of the current first process of the API server's namespaces.
    Several threads may send requests at once."""

    def __init__(self, server: str, pki: Path, process: Callable[[], Path]):
        self.server, self.process, self.lock = server, process, threading.Lock()
        self.context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self.context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        self.unused: list[Connection] = []

    def _connection(self) -> Connection:
        with self.lock:
            while self.unused:
                if not (one := self.unused.pop()).lost():
                    return one
                one.close()
        return Connection(self.server, self.process, self.context, SECONDS)

    def request(self, verb: str, path: str, body: object = None, kind: str = "application/json",
                give_up: float = 0, **parameters: str) -> str:
        """As clients of Kubernetes do, asks again where the server asks for that, as when it has to read a kind again: until `give_up`, in half a minute."""
        give_up = give_up or time.monotonic() + 30
        asked = f"{path}?{urllib.parse.urlencode(parameters)}" if parameters else path
        text = None if body is None else json.dumps(body)
        one = self._connection()
        try:
            one.request(verb, asked, text, {"Accept": "application/json", "Content-Type": kind})
            answer = one.getresponse()
            said = answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            one.close()
            raise RequestFailed(0, f"{verb} {asked}: {error!r}") from None
        with self.lock:
            self.unused.append(one)
        if answer.status == 429 and (pause := answer.getheader("Retry-After")) and time.monotonic() < give_up:
            time.sleep(max(float(pause), 0.1))
            return self.request(verb, path, body, kind, give_up, **parameters)
        if answer.status >= 300:
            with contextlib.suppress(ValueError, TypeError, KeyError):
                said = json.loads(said)["message"]
            raise RequestFailed(answer.status, f"{verb} {asked}: {answer.status} {said}")
        return said

    # --- objects
    def get(self, kind: str, name: str = "", namespace: str = "default", **selectors: str) -> dict:
        """An object or a list of objects; `selectors` are labelSelector and fieldSelector."""
        return json.loads(self.request("GET", path_of(kind, name, namespace), **selectors))

    def names(self, *kinds: str, namespace: str = "", **selectors: str) -> list[str]:
        """All objects of those kinds, named as by `kubectl get -o name`; a kind whose definition may be absent has none then."""
        found = []
        for kind in kinds:
            prefix = ".".join([kind, *GROUPS.get(plural(kind), CORE).split("/")[1:-1]])
            try:
                found += [f"{prefix}/{one['metadata']['name']}" for one in self.get(kind, "", namespace, **selectors)["items"]]
            except RequestFailed as error:
                if error.code != 404 or plural(kind) not in OPTIONAL:
                    raise
        return found

    def log(self, pod: str, namespace: str = "default", **options: str) -> str:
        """What a pod's only or default container has written; `options` are the API's, such as previous="true"."""
        return self.request("GET", f"{path_of('pod', pod, namespace)}/log", **options)

    def create(self, manifest: dict) -> dict:
        """Creates an object, or each object of a List."""
        if manifest["kind"] == "List":
            return {"items": [self.create(item) for item in manifest["items"]]}
        namespace = manifest["metadata"].get("namespace", "default")
        return json.loads(self.request("POST", path_of(manifest["kind"], "", namespace), manifest))

    def apply(self, manifest: dict) -> dict:
        """Server-side apply, with force: takes over fields that other managers own. As with kubectl, a field that the kind does not have is an error."""
        meta = manifest["metadata"]
        path = path_of(manifest["kind"], meta["name"], meta.get("namespace", "default"))
        return json.loads(self.request("PATCH", path, manifest, "application/apply-patch+yaml",
                                       fieldManager="kubectl", force="true", fieldValidation="Strict"))

    def merge(self, kind: str, name: str, change: dict, namespace: str = "default") -> dict:
        path = path_of(kind, name, namespace)
        return json.loads(self.request("PATCH", path, change, "application/merge-patch+json"))

    def delete(self, kind: str, name: str = "", namespace: str = "default", **selectors: str):
        """Deletes one object, if it exists, or all that are selected. Does not wait."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        try:
            self.request("DELETE", path_of(kind, name, namespace), options, **selectors)
        except RequestFailed as error:
            if error.code != 404:
                raise

    def exists(self, kind: str, name: str = "", namespace: str = "default") -> bool:
        """Whether there is that object, or any of that kind."""
        try:
            found = self.get(kind, name, namespace)
        except RequestFailed as error:
            if error.code != 404:
                raise
            return False
        return bool(name or found["items"])

    def events(self, path: str, version: str) -> Iterator[dict]:
        """The watch events after that version, until the connection ends."""
        one = Connection(self.server, self.process, self.context, None)
        try:
            one.request("GET", f"{path}?watch=1&resourceVersion={version}",
                        headers={"Accept": "application/json"})
            answer = one.getresponse()
            while answer.status == 200 and (line := answer.readline()):
                yield json.loads(line)
        finally:
            one.close()


AWAY = (RequestFailed, OSError, http.client.HTTPException, ValueError)  # the API server ended the watch


class Watch(threading.Thread):
    """All objects of a kind, kept up to date by a watch until stop(): by name, or namespace/name."""

    def __init__(self, api: Api, kind: str):
        super().__init__(daemon=True, name=f"watch of {kind}")
        self.api, self.path = api, path_of(kind, namespace="")
        self.changed = threading.Condition()
        self.objects: dict[str, dict] = {}
        self.at: float = 0  # time of the last change, in seconds since 1970
        self.stopped = False

    @staticmethod
    def name_of(one: dict) -> str:
        meta = one["metadata"]
        return f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else meta["name"]

    def note(self, name: str, one: dict):
        """Called with each state of each object in turn, with `changed` held."""

    def _all(self) -> str:
        listed = json.loads(self.api.request("GET", self.path))
        with self.changed:
            self.objects = {self.name_of(one): one for one in listed["items"]}
            for name, one in self.objects.items():
                self.note(name, one)
            self.at = time.time()
            self.changed.notify_all()
        return listed["metadata"]["resourceVersion"]

    def run(self):
        while not self.stopped:
            with contextlib.suppress(*AWAY):
                for event in self.api.events(self.path, self._all()):
                    if self.stopped or event["type"] == "ERROR":
                        break
                    with self.changed:
                        self.at = time.time()
                        if event["type"] == "DELETED":
                            self.objects.pop(self.name_of(event["object"]), None)
                        else:
                            name = self.name_of(event["object"])
                            self.objects[name] = event["object"]
                            self.note(name, event["object"])
                        self.changed.notify_all()
            time.sleep(0.2)

    def stop(self):
        self.stopped = True
