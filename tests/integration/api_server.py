"""An API server for the tool's verbs: a few objects over plain HTTP, server-side apply of labels taken away, and what an API server says
when it refuses. Knows no more than these tests ask."""
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

GROUPS = {"/apis/penstock.io/v1alpha1": "nodestates", "/apis/nfd.k8s-sigs.io/v1alpha1": "nodefeatures", "/apis/apps/v1": "daemonsets"}
LISTS = {"/api/v1/nodes": "nodes", "/api/v1/pods": "pods", "/api/v1/configmaps": "configmaps", "/apis/apps/v1/daemonsets": "daemonsets",
         "/apis/penstock.io/v1alpha1/nodestates": "nodestates", "/apis/nvidia.com/v1/clusterpolicies": "clusterpolicies"}


class ApiServer:
    """`objects`: plural → name → object. `missing`: plurals whose kind is not installed; `forbidden`: those that may not be read."""

    def __init__(self, folder: Path):
        self.objects: dict[str, dict[str, dict]] = {plural: {} for plural in (*LISTS.values(), "nodefeatures")}
        self.missing = {"clusterpolicies"}
        self.forbidden: set[str] = set()
        self.requests: list[str] = []
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test", "preferences": {},
            "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{self.http.server_port}"}}],
            "users": [{"name": "test", "user": {"token": "t"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": "penstock"}}]}))

    def stop(self):
        self.http.shutdown()
        self.http.server_close()

    def put(self, plural: str, name: str, **object):
        metadata = {"name": name, "uid": f"uid-{name}"} | object.pop("metadata", {})
        self.objects[plural][name] = {"metadata": metadata} | object

    def answer(self, method: str, path: str, query: dict, body: bytes) -> tuple[int, dict]:
        if path in GROUPS:
            plural = GROUPS[path]
            return (404, self.status(404, "NotFound", "not found")) if plural in self.missing else (200, {"resources": [{"name": plural}]})
        folder, _, name = path.rpartition("/")
        if folder.startswith("/apis/nfd") or path.startswith("/apis/nfd"):
            plural, name = "nodefeatures", "" if path.endswith("/nodefeatures") else name
        else:
            plural, name = (LISTS[path], "") if path in LISTS else (LISTS.get(folder, ""), name)
        if not plural or plural in self.missing:
            return 404, self.status(404, "NotFound", "the server could not find the requested resource")
        if plural in self.forbidden:
            return 403, self.status(403, "Forbidden", f'{plural} is forbidden: User "test" cannot list resource "{plural}" in API group "" at the cluster scope')
        if method == "GET" and not name:
            return 200, {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": self.select(plural, query)}
        if name not in self.objects[plural]:
            return 404, self.status(404, "NotFound", f'{plural} "{name}" not found')
        if method == "DELETE":
            if "dryRun" not in query:
                del self.objects[plural][name]
            return 200, self.status(200, "", "")
        if method == "PATCH":
            return 200, self.apply(self.objects[plural], name, query, json.loads(body))
        return 200, self.objects[plural][name]

    def select(self, plural: str, query: dict) -> list[dict]:
        found = list(self.objects[plural].values())
        for selector, at in (("fieldSelector", self.field), ("labelSelector", lambda one, key: one["metadata"].get("labels", {}).get(key, ""))):
            if selector in query:
                key, _, value = query[selector].partition("=")
                found = [one for one in found if at(one, key) == value]
        return found

    @staticmethod
    def field(one: dict, key: str) -> str:
        return one.get("spec", {}).get("nodeName", "") if key == "spec.nodeName" else one["metadata"]["name"]

    @staticmethod
    def apply(objects: dict, name: str, query: dict, patch: dict) -> dict:
        """Of nothing: what the manager alone owns goes."""
        before = objects[name]
        assert patch["metadata"].get("uid") == before["metadata"]["uid"] and set(patch["metadata"]) <= {"name", "uid"}
        after = json.loads(json.dumps(before))
        fields = after["metadata"].get("managedFields", [])
        own = [entry for entry in fields if entry["manager"] == query["fieldManager"] and entry["operation"] == "Apply"]
        after["metadata"]["managedFields"] = others = [entry for entry in fields if entry not in own]
        for entry in own:
            for key in entry["fieldsV1"]["f:metadata"]["f:labels"]:
                if not any(key in other["fieldsV1"].get("f:metadata", {}).get("f:labels", {}) for other in others):
                    del after["metadata"]["labels"][key.removeprefix("f:")]
        if "dryRun" not in query:
            objects[name] = after
        return after

    @staticmethod
    def status(code: int, reason: str, message: str) -> dict:
        return {"kind": "Status", "apiVersion": "v1", "status": "Failure" if code >= 400 else "Success", "reason": reason, "code": code, "message": message}

    def handler(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self):
                url = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                server.requests.append(f"{self.command} {url.path}")
                query = {key: values[0] for key, values in parse_qs(url.query, keep_blank_values=True).items()}
                code, answer = server.answer(self.command, url.path, query, body)
                text = json.dumps(answer).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_PATCH = do_DELETE = serve

            def log_message(self, *_):
                pass

        return Handler
