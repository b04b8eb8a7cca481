#!/usr/bin/env python3
"""Runs inside a cluster's namespaces: the first process of each node, and the daemons it starts. cluster.py calls it; it never
accesses anything outside the namespaces it was started in.

  inside.py host DIR NODES | node DIR K | join DIR K | start HOME DAEMON | kill HOME DAEMON SIGNAL"""
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

from api import Api, RequestFailed, path_of
from parts import Parts

CGROUPS = Path("/sys/fs/cgroup")


def address(node: int) -> str:
    return f"10.90.0.{10 + node}"


SERVER = address(1)
# Seconds that scenarios wait for anything at least: what takes one on a quiet machine may take a minute beside other clusters.
LEAST = 150
CONTROLLERS = ("controller-manager", "scheduler")


def own_process() -> Path:
    return Path("/proc/self")


def wait_until(predicate, seconds: float, what: str, every: float = 0.05):
    """Polls until the answer is true and returns it; after the deadline, the error names the awaited condition and the last answer. The interval grows with
    time, up to five times `every`, since polling slows down the awaited event."""
    deadline, pause = time.monotonic() + seconds, every
    while True:
        asked = time.monotonic()
        answer = predicate()
        if answer:
            return answer
        now = time.monotonic()
        if now > deadline:
            raise TimeoutError(f"gave up after {seconds} s waiting for {what}; last seen: {answer!r}")
        time.sleep(max(pause, now - asked))
        pause = min(1.3 * pause, 5 * every)


def shell(*command, **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in command], check=True, text=True, **options)


def succeeds(*command, **options) -> bool:
    return subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options).returncode == 0


def cgroup_hierarchies() -> list[Path]:
    """Version 2: the single hierarchy; version 1 and hybrid: that of each controller and the unified one."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [folder for folder in CGROUPS.iterdir() if folder.is_dir() and not folder.is_symlink()]


def make_cgroups(group: str):
    for root in cgroup_hierarchies():
        if root == CGROUPS:
            for controller in (root / "cgroup.controllers").read_text().split():
                (root / "cgroup.subtree_control").write_text(f"+{controller}")
        (root / group).mkdir(exist_ok=True)
        for file in ("cpuset.cpus", "cpuset.mems"):  # a new version 1 group has none
            if (root / file).exists():
                (root / group / file).write_text((root / file).read_text())


# --- daemons: each one is a script in run/, so that it can be killed and restarted -------------------------------------------------
def define(home: Path, name: str, command: list, environment: dict[str, str] | None = None):
    for folder in ("run", "log"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    script = home / "run" / name
    variables = "".join(f"export {key}={shlex.quote(value)}\n" for key, value in (environment or {}).items())
    script.write_text(f"#!/bin/sh\n{variables}exec {shlex.join(str(word) for word in command)}\n")
    script.chmod(0o755)


def start(home: Path, name: str):
    if name == "kubelet":  # it exits if its runtime is not up yet
        wait_until(lambda: succeeds("ctr", "version"), 120, "containerd", every=0.2)
    if name in CONTROLLERS:  # they exit if the API server does not answer within 10 s
        api = Api(SERVER, home / "pki", own_process)
        wait_until(lambda: answers(api, "/readyz"), 180, "the API server")
    with open(home / "log" / f"{name}.log", "a") as log:
        process = subprocess.Popen([home / "run" / name], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    (home / "run" / f"{name}.pid").write_text(str(process.pid))


def kill(home: Path, name: str, number: int):
    pid = int((home / "run" / f"{name}.pid").read_text())
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
    if number == signal.SIGKILL:
        wait_until(lambda: not Path(f"/proc/{pid}").exists(), 60, f"{name} to die")


# The daemons are written in Go, and here processors are scarcer than memory: several threads each would mostly search for work and wake each other.
OF_DAEMONS = {"GOGC": "400", "GOMAXPROCS": "1"}


def run_daemon(home: Path, name: str, *command):
    define(home, name, list(command), OF_DAEMONS)
    start(home, name)


def control_plane(directory: Path):
    keys = directory / "pki"
    run_daemon(directory, "etcd", "etcd", "--data-dir", directory / "etcd", "--listen-client-urls", "http://127.0.0.1:2379",
               "--advertise-client-urls", "http://127.0.0.1:2379", "--listen-peer-urls", "http://127.0.0.1:2380", "--unsafe-no-fsync")
    run_daemon(
        directory, "apiserver", "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", "--bind-address=0.0.0.0",
        f"--advertise-address={SERVER}", "--secure-port=6443", "--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=Node,RBAC",
        f"--client-ca-file={keys}/ca.crt", f"--tls-cert-file={keys}/apiserver.crt", f"--tls-private-key-file={keys}/apiserver.key",
        "--allow-privileged=true", f"--kubelet-client-certificate={keys}/kubelet-client.crt",
        f"--kubelet-client-key={keys}/kubelet-client.key", f"--kubelet-certificate-authority={keys}/ca.crt",
        "--kubelet-preferred-address-types=InternalIP", f"--service-account-key-file={keys}/sa.pub",
        f"--service-account-signing-key-file={keys}/sa.key", "--service-account-issuer=https://kubernetes.default.svc",
        "--enable-admission-plugins=NodeRestriction", f"--requestheader-client-ca-file={keys}/ca.crt",
        "--requestheader-allowed-names=front-proxy", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group", "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={keys}/front-proxy.crt", f"--proxy-client-key-file={keys}/front-proxy.key",
        *os.environ.get("APISERVER_FLAGS", "").split())
    run_daemon(directory, "controller-manager", "kube-controller-manager", f"--kubeconfig={keys}/controller-manager.kubeconfig",
               "--leader-elect=false", f"--service-account-private-key-file={keys}/sa.key", f"--root-ca-file={keys}/ca.crt",
               "--use-service-account-credentials", f"--cluster-signing-cert-file={keys}/ca.crt",
               f"--cluster-signing-key-file={keys}/ca.key", "--bind-address=127.0.0.1")
    run_daemon(directory, "scheduler", "kube-scheduler", f"--kubeconfig={keys}/scheduler.kubeconfig", "--leader-elect=false",
               "--bind-address=127.0.0.1")


# --- a node -----------------------------------------------------------------------------------------------------------------------------
CNI = """{{"cniVersion": "0.4.0", "name": "bench", "plugins": [{{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipam":
 {{"type": "host-local", "dataDir": "{ipam}", "ranges": [[{{"subnet": "10.244.{node}.0/24"}}]], "routes": [{{"dst": "0.0.0.0/0"}}]}}}}]}}
"""
CONTAINERD = """version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.local/pause:1"
  restrict_oom_score_adj = true                 # without CAP_SYS_RESOURCE every sandbox would fail
  enable_cdi = {cdi}                             # off by default in containerd 1.7, unknown to 1.6: devices would be ignored in silence
  cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "{runc}"
      SystemdCgroup = false
"""
KUBELET = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false                             # 1.35 and later refuse cgroup v1 otherwise
cgroupDriver: cgroupfs
cgroupRoot: /{group}
authentication: {{anonymous: {{enabled: false}}, webhook: {{enabled: true}}, x509: {{clientCAFile: {pki}/ca.crt}}}}
authorization: {{mode: Webhook}}
tlsCertFile: {pki}/n{node}.crt
tlsPrivateKeyFile: {pki}/n{node}.key
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
resolvConf: ""
failSwapOn: false
evictionHard: {{memory.available: 100Mi, nodefs.available: 1%, nodefs.inodesFree: 1%, imagefs.available: 1%}}
imageGCHighThresholdPercent: 100
"""
SERVICE_ADDRESS = f"""table ip bench {{
    chain pods {{ type nat hook prerouting priority dstnat; ip daddr 10.96.0.1 tcp dport 443 dnat to {SERVER}:6443; }}
    chain host {{ type nat hook output priority -100; ip daddr 10.96.0.1 tcp dport 443 dnat to {SERVER}:6443; }}
}}
"""  # in-cluster clients call the API server at the first service address; this rule replaces kube-proxy


PRIVATE = ("etc", "var", "opt")


def keep_machine_files(directory: Path):
    """Mounts the machine's /etc, /var and /opt read-only below DIR/lower before n1 covers them: every node's overlay lies over these. Over n1's overlay the
    other nodes would see n1's writes, and a folder that n1 removes could not be removed on them (ENOENT)."""
    for part in PRIVATE:
        below = directory / "lower" / part
        below.mkdir(parents=True, exist_ok=True)
        shell("mount", "--bind", f"/{part}", below)
        shell("mount", "-o", "remount,bind,ro", below)


def private_files(home: Path):
    """Gives the node's mount namespace its own /etc, /var and /opt over the machine's, an empty /run and /dev/shm, and its two state folders."""
    for part in PRIVATE:
        upper, work = home / "overlay" / part / "upper", home / "overlay" / part / "work"
        upper.mkdir(parents=True, exist_ok=True)
        work.mkdir(exist_ok=True)
        layers = f"lowerdir={home.parent / 'lower' / part},upperdir={upper},workdir={work}"
        shell("mount", "-t", "overlay", part, "-o", layers, f"/{part}")
    for folder in ("/run", "/dev/shm"):
        shell("mount", "-t", "tmpfs", "tmpfs", folder)
    Path("/run/lock").mkdir()
    for name in ("kubelet", "containerd"):
        (home / name).mkdir(exist_ok=True)
        Path("/var/lib", name).mkdir(exist_ok=True)
        shell("mount", "--bind", home / name, f"/var/lib/{name}")
    shell("mount", "--make-rshared", "/")
    Path("/etc/resolv.conf").unlink(missing_ok=True)
    Path("/etc/resolv.conf").touch()
    wanted = (home / "mounts").read_text() if (home / "mounts").exists() else ""
    for source, target in (line.split() for line in wanted.splitlines()):
        Path(target).mkdir(parents=True, exist_ok=True)
        shell("mount", "--bind", source, target)


def new_boot_id(home: Path):
    """Makes programs that check for a reboot of the machine see one: `up` on a directory that was up before is a reboot."""
    (home / "boot_id").write_text(f"{uuid.uuid4()}\n")
    shell("mount", "--bind", home / "boot_id", "/proc/sys/kernel/random/boot_id")


def node(directory: Path, k: int, parts: Parts):
    home, group = directory / f"n{k}", f"bench-{directory.name}-n{k}"
    for folder in (Path("/etc/cni/net.d"), Path("/etc/containerd"), home / "log"):
        folder.mkdir(parents=True, exist_ok=True)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    shell("nft", "-f", "-", input=SERVICE_ADDRESS)
    Path("/etc/cni/net.d/10-bench.conflist").write_text(CNI.format(ipam=home / "ipam", node=k))
    cdi = home / "containerd-cdi"
    Path("/etc/containerd/config.toml").write_text(
        CONTAINERD.format(cdi=cdi.read_text() if cdi.exists() else os.environ.get("CONTAINERD_CDI", "true"), cni=parts.cni, runc=parts.runc))
    make_cgroups(group)
    (home / "kubelet.yaml").write_text(KUBELET.format(group=group, pki=directory / "pki", node=k) + os.environ.get("KUBELET_CONFIG", ""))
    run_daemon(home, "containerd", "containerd")
    wait_until(lambda: succeeds("ctr", "version"), 120, "containerd", every=0.2)
    with open(home / "log/import.log", "a") as log:
        for archive in [*sorted(parts.images.glob("*.tar")), *os.environ.get("BENCH_IMAGES", "").split()]:
            shell("ctr", "-n", "k8s.io", "images", "import", archive, stdout=log, stderr=log)
    for unit in sorted((home / "boot").glob("*")):  # daemons that a test starts before the kubelet, like systemd's Before=
        start(home, unit.name)
    run_daemon(home, "kubelet", "kubelet", f"--config={home}/kubelet.yaml", f"--kubeconfig={directory}/pki/n{k}.kubeconfig",
               f"--hostname-override=n{k}", f"--node-ip={address(k)}")


def join(directory: Path, k: int):
    """Called on n1: creates node K's namespaces, connects them to the bridge, starts its daemons."""
    home = directory / f"n{k}"
    (home / "log").mkdir(parents=True, exist_ok=True)
    (home / "wired").unlink(missing_ok=True)
    os.mkfifo(home / "wired")
    with open(home / "log/node.log", "w") as log:
        inner = subprocess.Popen(["unshare", "-m", "-n", "-u", "-i", "-p", "-f", "--kill-child", "--propagation", "private", "--mount-proc",
                                  sys.executable, __file__, "node", directory, str(k)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    children = Path(f"/proc/{inner.pid}/task/{inner.pid}/children")
    init = wait_until(lambda: children.read_text().strip(), 60, f"the first process of n{k}")
    (home / "init.pid").write_text(init)
    wait_until(lambda: not succeeds("ip", "link", "show", f"v{k}"), 60, f"the old cable of n{k} to be gone")  # after a reboot
    shell("ip", "link", "add", f"v{k}", "type", "veth", "peer", "name", "eth0", "netns", init)
    shell("ip", "link", "set", f"v{k}", "master", "br0", "up")
    shell("ip", "route", "replace", f"10.244.{k}.0/24", "via", address(k))
    (home / "wired").write_text("go\n")


def answers(api: Api, path: str) -> str:
    """The API server's response at that path; None if it reports an error or does not answer."""
    with contextlib.suppress(RequestFailed):
        return api.request("GET", path)
    return ""


def ready(api: Api, nodes: int) -> bool:
    conditions = [condition for node in api.get("nodes")["items"] for condition in node["status"].get("conditions", [])]
    return sum(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions) == nodes


def enter_environment(directory: Path, parts: Parts):
    os.environ["KUBECONFIG"] = f"{directory}/pki/admin.kubeconfig"
    os.environ["PATH"] = f"{parts.path}:{os.environ['PATH']}"


def become_host(directory: Path, nodes: int):
    """The first process in the namespaces of n1 and the control plane; ends as the process that reaps orphans."""
    parts, begin = Parts(os.environ["BENCH_RELEASE"]), time.monotonic()
    enter_environment(directory, parts)
    keep_machine_files(directory)
    private_files(directory / "n1")
    new_boot_id(directory / "n1")
    Path("/proc/sys/kernel/hostname").write_text("n1")
    Path("/etc/hosts").write_text(f"127.0.0.1 localhost\n{SERVER} n1\n")
    for line in (f"link set lo up|link add br0 type bridge|addr add {SERVER}/24 dev br0|link set br0 up|link add v1 type veth peer name v1peer|"
                 f"link set v1 master br0 up|link set v1peer up|route add default via {SERVER} dev br0").split("|"):
        shell("ip", *line.split())
    api = Api(SERVER, directory / "pki", own_process)
    control_plane(directory)
    print(f"API server ready after {time.monotonic() - begin:.1f} s", flush=True)
    node(directory, 1, parts)
    for k in range(2, nodes + 1):
        join(directory, k)
    wait_until(lambda: ready(api, nodes), 240, f"{nodes} Ready nodes")
    # A pod created before its namespace's default service account is rejected.
    wait_until(lambda: answers(api, path_of("serviceaccount", "default")), 60, "the default service account")
    print(f"{nodes} nodes Ready after {time.monotonic() - begin:.1f} s", flush=True)
    (directory / "ready").touch()
    os.execv(parts.pause, [str(parts.pause)])


def become_node(directory: Path, k: int):
    parts = Parts(os.environ["BENCH_RELEASE"])
    enter_environment(directory, parts)
    private_files(directory / f"n{k}")
    new_boot_id(directory / f"n{k}")
    (directory / f"n{k}/wired").read_text()
    Path("/proc/sys/kernel/hostname").write_text(f"n{k}")
    for line in (f"link set lo up|addr add {address(k)}/24 dev eth0|link set eth0 up|route add default via {SERVER}").split("|"):
        shell("ip", *line.split())
    node(directory, k, parts)
    os.execv(parts.pause, [str(parts.pause)])


def main(arguments: list[str]):
    match arguments:
        case ["host", directory, nodes]:
            become_host(Path(directory), int(nodes))
        case ["node", directory, k]:
            become_node(Path(directory), int(k))
        case ["join", directory, k]:
            join(Path(directory), int(k))
        case ["start", home, name]:
            start(Path(home), name)
        case ["kill", home, name, number]:
            kill(Path(home), name, int(number))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
