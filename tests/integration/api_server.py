"""An API server without objects, over plain HTTP: lists are empty, all else is not there. For an
agent that is to have joined some cluster."""
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

GROUPS = {"/apis/penstock.io/v1alpha1": "nodestates",
          "/apis/nfd.k8s-sigs.io/v1alpha1": "nodefeatures"}
LISTS = ("/nodes", "/pods", "/configmaps", "/nodestates", "/nodefeatures")


class ApiServer:
    def __init__(self, folder: Path):
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        serving = threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True)
        serving.start()
        self.kubeconfig = folder / "kubeconfig"
        server = f"http://127.0.0.1:{self.http.server_port}"
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test", "preferences": {},
            "clusters": [{"name": "test", "cluster": {"server": server}}],
            "users": [{"name": "test", "user": {"token": "t"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}]}))

    def stop(self):
        self.http.shutdown()
        self.http.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def serve(self):
        path = urlsplit(self.path).path
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        code = 200
        if path in GROUPS:
            answer = {"resources": [{"name": GROUPS[path]}]}
        elif self.command == "GET" and path.endswith(LISTS):
            answer = {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []}
        else:
            code, answer = 404, {"kind": "Status", "apiVersion": "v1", "status": "Failure",
                                 "reason": "NotFound", "code": 404, "message": f"{path} not found"}
        text = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PATCH = do_DELETE = do_POST = do_PUT = serve

    def log_message(self, *_):
        pass
