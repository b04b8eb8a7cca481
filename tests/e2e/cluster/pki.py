"""The certificates of a cluster: one authority, one certificate and kubeconfig for each caller."""
import subprocess
from pathlib import Path

NAMES = "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,DNS:localhost"
EXTENSIONS = """basicConstraints=CA:FALSE
keyUsage=digitalSignature,keyEncipherment
extendedKeyUsage=clientAuth,serverAuth
"""
KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{{name: bench, cluster: {{server: "https://{server}:6443", certificate-authority: {pki}/ca.crt}}}}]
users: [{{name: {name}, user: {{client-certificate: {pki}/{name}.crt, client-key: {pki}/{name}.key}}}}]
contexts: [{{name: bench, context: {{cluster: bench, user: {name}}}}}]
current-context: bench
"""


def openssl(*arguments, cwd: Path, **options) -> subprocess.CompletedProcess:
    return subprocess.run(["openssl", *arguments], cwd=cwd, check=True, capture_output=True, text=True, **options)


def certificate(pki: Path, server: str, name: str, subject: str, names: str = ""):
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key", cwd=pki)
    request = openssl("req", "-new", "-key", f"{name}.key", "-subj", subject, cwd=pki).stdout
    (pki / "extensions").write_text(EXTENSIONS + (f"subjectAltName={names}\n" if names else ""))
    openssl("x509", "-req", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "3650", "-out", f"{name}.crt",
            "-extfile", "extensions", cwd=pki, input=request)
    (pki / f"{name}.kubeconfig").write_text(KUBECONFIG.format(server=server, pki=pki, name=name))


def make(pki: Path, nodes: dict[str, str]):
    """`nodes` maps each node's name to its address; the first one runs the API server. Keeps existing files."""
    if (pki / "sa.pub").exists():
        return
    pki.mkdir(parents=True, exist_ok=True)
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "ca.key", cwd=pki)
    openssl("req", "-x509", "-new", "-key", "ca.key", "-subj", "/CN=bench-ca", "-days", "3650", "-out", "ca.crt", cwd=pki)
    server = next(iter(nodes.values()))
    certificate(pki, server, "apiserver", "/CN=kube-apiserver", f"{NAMES},IP:127.0.0.1,IP:10.96.0.1,IP:{server}")
    certificate(pki, server, "admin", "/O=system:masters/CN=admin")
    certificate(pki, server, "controller-manager", "/CN=system:kube-controller-manager")
    certificate(pki, server, "scheduler", "/CN=system:kube-scheduler")
    certificate(pki, server, "kubelet-client", "/O=system:masters/CN=apiserver-kubelet-client")
    certificate(pki, server, "front-proxy", "/CN=front-proxy")
    for name, address in nodes.items():
        certificate(pki, server, name, f"/O=system:nodes/CN=system:node:{name}", f"DNS:{name},IP:{address}")
    openssl("genrsa", "-out", "sa.key", "2048", cwd=pki)
    openssl("rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub", cwd=pki)
