"""A minimal API server over plain HTTP for agents that are configured for a cluster. It lists and watches the objects that a test creates and
accepts writes without storing them, except for the list `writes`; every other path is not found. A test can stop it and start it again at the same address."""
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

GROUPS = {"/apis/penstock.io/v1alpha1": "nodestates",
          "/apis/nfd.k8s-sigs.io/v1alpha1": "nodefeatures"}
LISTS = ("/nodes", "/pods", "/configmaps", "/nodestates", "/nodefeatures")


class ApiServer:
    def __init__(self, folder: Path):
        self.objects, self.version, self.http = {}, 1, None
        self.writes: list[tuple[str, str, dict]] = []  # method, path, object
        self.port = 0
        self.up()
        self.kubeconfig = folder / "kubeconfig"
        server = f"http://127.0.0.1:{self.port}"
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test", "preferences": {},
            "clusters": [{"name": "test", "cluster": {"server": server}}],
            "users": [{"name": "test", "user": {"token": "t"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}]}))

    def put(self, path: str, kind: str, **content):
        """`path`: "/api/v1/nodes/n1"."""
        metadata = {"name": path.rpartition("/")[2], "uid": path, "resourceVersion": str(self.version + 1)} | content.pop("metadata", {})
        if "/namespaces/" in path:
            metadata["namespace"] = path.split("/namespaces/")[1].split("/")[0]
        self.objects[path] = {"apiVersion": "v1", "kind": kind, "metadata": metadata} | content
        self.version += 1  # last: a list that has this version has the object, because a watch that begins there does not send it

    def below(self, path: str, query: dict) -> list[dict]:
        name = query.get("fieldSelector", [""])[0].removeprefix("metadata.name=")
        everywhere = path.rpartition("/")[2]  # also without a namespace in the path
        return [one for at, one in list(self.objects.items())
                if at.split("/")[-2] == everywhere and at.startswith(path if "/namespaces/" in path else "/")
                and name in ("", one["metadata"]["name"])]

    def up(self):
        self.http = Server(("127.0.0.1", self.port), Handler)
        self.http.api, self.port = self, self.http.server_port
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def down(self):
        """Stops listening and breaks open streams."""
        self.http.ended = True
        self.http.shutdown()
        self.http.server_close()

    stop = down


class Server(ThreadingHTTPServer):
    ended, daemon_threads, block_on_close = False, True, False
    api: ApiServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def serve(self):
        url = urlsplit(self.path)
        path, query = url.path, parse_qs(url.query)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if body and self.command in ("PATCH", "POST", "PUT"):
            self.server.api.writes.append((self.command, path, json.loads(body)))
        if self.server.ended:
            self.close_connection = True
            return
        listed = self.command == "GET" and path.endswith(LISTS)
        if listed and "watch" in query and "sendInitialEvents" not in query:
            self.watch(path, query)
        elif listed and "watch" in query:
            self.answer(422, status(422, "Invalid", "sendInitialEvents: Forbidden: is not supported here"))
        elif listed:
            self.answer(200, {"kind": "List", "metadata": {"resourceVersion": str(self.server.api.version)},
                              "items": self.server.api.below(path, query)})
        elif path in GROUPS:
            self.answer(200, {"resources": [{"name": GROUPS[path]}]})
        elif found := self.server.api.objects.get(path.removesuffix("/status")):
            self.answer(200, found)
        else:
            self.answer(404, status(404, "NotFound", f"{path} not found"))

    def watch(self, path: str, query: dict):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        seen = int(query.get("resourceVersion", ["0"])[0] or 0)
        while not self.server.ended:
            new = [one for one in self.server.api.below(path, query) if int(one["metadata"]["resourceVersion"]) > seen]
            for one in new:
                line = json.dumps({"type": "MODIFIED", "object": one}).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.flush()
            seen = max([seen, *(int(one["metadata"]["resourceVersion"]) for one in new)])
            time.sleep(0.02)
        self.close_connection = True

    def answer(self, code: int, said: dict):
        text = json.dumps(said).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PATCH = do_DELETE = do_POST = do_PUT = serve

    def log_message(self, *_):
        pass


def status(code: int, reason: str, message: str) -> dict:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": message}
