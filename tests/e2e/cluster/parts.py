#!/usr/bin/env python3
"""Downloads and builds the parts of a real Kubernetes, once: each part lives in a cache outside the checkout, in a folder named by a
hash of everything it is built from. Prints the folders; a second run takes a moment.

  packages/   etcd, containerd, kubectl (Debian 13), runc, CNI plugins, busybox (Debian 12), unpacked and not installed
  containerd-older/  Debian 12's containerd, for the older Kubernetes
  kubernetes/ kube-apiserver, kube-controller-manager, kube-scheduler, kubelet: one binary under four names; a second folder has an
              older release
  peer/       kubelet-peer, the tests' own peer for the device plugin protocol
  kubelet-devices/  the kubelet's device manager alone
  tools/      helm, and NFD's master, worker and CRDs
  monitor-definitions/, gpu-operator-definitions/  CRDs of prometheus-operator and of NVIDIA's GPU Operator
  images/     pause.tar, busybox.tar, debian.tar (a shell and this machine's C library, without any driver files)

Needs root, apt, gcc, and the Go module proxy. Building Kubernetes takes about 6 minutes on two cores, 2.5 GB of memory and 4 GB of
disk, in the Go build cache; the older one takes nearly as long again; the tools, which share its libraries, take half a minute."""
import contextlib
import fcntl
import hashlib
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parents[2] / "deploy/image"), str(HERE.parents[1] / "support")]

import images as debian  # noqa: E402
import oci  # noqa: E402

GO, GO_OLDER, GO_TOOLS = HERE / "go", HERE / "go-older", HERE / "go-tools"
RELEASES = {"current": GO, "older": GO_OLDER}
# Go modules, with their checksums in the format of go.sum.
MONITORS = "github.com/prometheus-operator/prometheus-operator@v0.85.0", "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s="
GPU_OPERATOR = "github.com/NVIDIA/gpu-operator@v0.0.0-20250917190837-d73a0086a6ba", "h1:LoeqwWjR0h2WRyHXmyYCPVwM/dAdKKxjE8LzyyeuqHI="  # 25.3.4
# Debian 12's own etcd, containerd and kubectl are too old (containerd 1.6 silently ignores CDI). Debian 13's packages need nothing newer than Debian 12's libc,
# except its runc.
PACKAGES = {"trixie": ["etcd-server", "containerd", "kubectl"], "bookworm": ["runc", "containernetworking-plugins", "busybox-static"]}
PROGRAMS = ["usr/bin/etcd", "usr/bin/kubectl", "usr/bin/containerd", "usr/bin/containerd-shim-runc-v2", "usr/bin/ctr",
            "usr/sbin/runc", "bin/busybox"]
# The containerd of older clusters: it does not support CDI.
CONTAINERD_OLDER = {"bookworm": ["containerd"]}
COMPILER = {"trixie-backports": ["golang-1.26-go", "golang-1.26-src"]}  # for machines whose Go is older than go.mod requires
# The environment of a program in Go that runs for a moment, as helm and kubectl do: it ends before there is garbage worth to be collected, and threads cost more
# than they save it, together a third of kubectl's processor time and half of helm's.
BRIEF = {"GOGC": "off", "GOMAXPROCS": "1"}
COMPONENTS = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"]


def home() -> Path:
    return Path(os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir)


def cache() -> Path:
    """The cache folder for anything that is expensive to build and can be rebuilt; scripts/setup and the tests share it."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or home() / ".cache") / "penstock"
    return Path(os.environ.get("PENSTOCK_CACHE") or default)


def key(*ingredients: object) -> str:
    digest = hashlib.sha256()
    for ingredient in ingredients:
        digest.update(ingredient.read_bytes() if isinstance(ingredient, Path) else repr(ingredient).encode())
        digest.update(b"\0")
    return digest.hexdigest()[:12]


class Missing(RuntimeError):
    """A part is missing from the cache, and downloads are not allowed."""


@contextlib.contextmanager
def building(target: Path, remedy: str = "scripts/check once, or tests/e2e/cluster/parts.py and tests/support/downloads.py"):
    """Yields an empty folder that becomes `target` if the body succeeds, or None if `target` exists. One caller at a time. With PENSTOCK_OFFLINE in the
    environment, as during tests, a missing target is an error that names the command to run."""
    if target.exists():
        yield None
        return
    if os.environ.get("PENSTOCK_OFFLINE"):
        raise Missing(f"{target} is missing; run {remedy}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.parent / f".{target.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            yield None
            return
        scratch = target.parent / f".{target.name}.making"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        start = time.monotonic()
        print(f"making {target} ...", file=sys.stderr, flush=True)
        yield scratch
        scratch.rename(target)
        print(f"made {target} in {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)


def run(*command, **options):
    subprocess.run([str(word) for word in command], check=True, **options)


def mirror() -> str:
    targets = subprocess.run(["apt-get", "indextargets", "--format", "$(SITE) $(LABEL)", "Created-By: Packages"],
                             check=True, capture_output=True, text=True).stdout
    for line in targets.splitlines():
        if line.endswith(" Debian"):
            return line.removesuffix(" Debian")
    sys.exit("parts.py: no Debian mirror in this machine's apt sources; the bench needs Debian packages")


def unpack_packages(suites: dict[str, list[str]], into: Path, components: str = "main"):
    """Downloads packages of releases that may differ from this machine's, with separate lists and settings, and unpacks them. Their maintainer scripts are
    put into DEBIAN/PACKAGE/ and not run."""
    source = mirror()
    for suite, names in suites.items():
        apt = into / "apt" / suite
        for folder in ("lists/partial", "cache/archives/partial", "empty.d", "debs"):
            (apt / folder).mkdir(parents=True)
        (apt / "sources.list").write_text(
            f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {source} {suite} {components}\n")
        command = ["apt-get", "-qq", "-o", f"Dir::State::Lists={apt}/lists", "-o", f"Dir::Cache={apt}/cache",
                   "-o", f"Dir::Etc::sourcelist={apt}/sources.list", "-o", f"Dir::Etc::sourceparts={apt}/empty.d",
                   "-o", "Dir::State::status=/dev/null", "-o", "APT::Get::List-Cleanup=0", "-o", "APT::Sandbox::User=root"]
        run(*command, "update")
        run(*command, "download", *names, cwd=apt / "debs")
        for deb in sorted((apt / "debs").glob("*.deb")):
            run("dpkg", "-x", deb, into)
            (into / "DEBIAN").mkdir(exist_ok=True)
            run("dpkg", "-e", deb, into / "DEBIAN" / deb.name.split("_")[0])
    shutil.rmtree(into / "apt")


def packages() -> Path:
    target = cache() / "bench" / f"packages-{key(PACKAGES, PROGRAMS)}"
    with building(target) as scratch:
        if scratch:
            unpack_packages(PACKAGES, scratch)
            (scratch / "sbin").mkdir(exist_ok=True)
            for program in PROGRAMS:
                (scratch / "sbin" / Path(program).name).symlink_to(f"../{program}")
    return target


def containerd_older() -> Path:
    target = cache() / "bench" / f"containerd-older-{key(CONTAINERD_OLDER)}"
    with building(target) as scratch:
        if scratch:
            unpack_packages(CONTAINERD_OLDER, scratch)
    return target / "usr/bin"


def go_environment() -> dict[str, str]:
    """An environment whose `go` is new enough: the machine's own, or one from Debian's backports."""
    environment = {**os.environ, "HOME": str(home()), "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    wanted = tuple(map(int, re.search(r"^go (\d+)\.(\d+)", (GO / "go.mod").read_text(), re.M).groups()))
    if go := shutil.which("go"):
        answer = subprocess.run([go, "version"], capture_output=True, text=True, env=environment).stdout
        if (found := re.search(r"go(\d+)\.(\d+)", answer)) and tuple(map(int, found.groups())) >= wanted:
            return environment
    compiler = cache() / "bench" / f"go-{key(COMPILER)}"
    with building(compiler) as scratch:
        if scratch:
            unpack_packages(COMPILER, scratch)
    root = compiler / "usr/lib/go-1.26"
    return {**environment, "GOROOT": str(root), "PATH": f"{root}/bin:{environment.get('PATH', os.defpath)}"}


def go_build(package: str, output: Path, linker_flags: str, module: Path = GO):
    run("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", linker_flags, "-o", output, package, cwd=module, env=go_environment())


def module_version(name: str, module: Path) -> str:
    return re.search(rf"^\s*(?:require )?{re.escape(name)} v(\S+)", (module / "go.mod").read_text(), re.M).group(1)


def kubernetes(release: str = "current") -> Path:
    module = RELEASES[release]
    version = module_version("k8s.io/kubernetes", module)
    major, minor, _ = version.split(".")
    at = "k8s.io/component-base/version"  # unset, every component would report v0.0.0-master and version checks would misbehave
    flags = (f"-s -w -X {at}.gitVersion=v{version} -X {at}.gitMajor={major} -X {at}.gitMinor={minor} -X {at}.gitTreeState=clean")
    target = cache() / "bench" / f"kubernetes-{key(module / 'go.mod', module / 'go.sum', module / 'kubernetes/main.go', flags)}"
    with building(target) as scratch:
        if scratch:
            go_build("./kubernetes", scratch / "kubernetes", flags, module)
            for component in COMPONENTS:
                (scratch / component).symlink_to("kubernetes")
    return target


def peer() -> Path:
    target = cache() / "bench" / f"peer-{key(GO / 'go.mod', GO / 'go.sum', GO / 'kubelet-peer/main.go')}"
    with building(target) as scratch:
        if scratch:
            go_build("./kubelet-peer", scratch / "kubelet-peer", "-s -w")
    return target


def kubelet_devices() -> Path:
    """The kubelet's device manager as a separate program, for tests/contract."""
    source = GO / "kubelet-devices"
    target = cache() / "bench" / f"kubelet-devices-{key(GO / 'go.mod', GO / 'go.sum', source / 'main.go', source / 'linkname.s')}"
    with building(target) as scratch:
        if scratch:
            go_build("./kubelet-devices", scratch / "kubelet-devices", "-s -w")
    return target


def tools() -> Path:
    nfd, version = "sigs.k8s.io/node-feature-discovery", module_version("sigs.k8s.io/node-feature-discovery", GO_TOOLS)
    # As in NFD's own image, whose pods see the machine's /sys as /host-sys.
    flags = f"-s -w -X {nfd}/pkg/utils/hostpath.pathPrefix=/host- -X {nfd}/pkg/version.version=v{version}"
    target = cache() / "bench" / f"tools-{key(GO_TOOLS / 'go.mod', GO_TOOLS / 'go.sum', flags, 'helm', 'nfd-master', 'nfd-worker')}"
    with building(target) as scratch:
        if scratch:
            go_build("helm.sh/helm/v3/cmd/helm", scratch / "helm", "-s -w", GO_TOOLS)
            for program in ("nfd-master", "nfd-worker"):
                go_build(f"{nfd}/cmd/{program}", scratch / program, flags, GO_TOOLS)
            source = subprocess.run(["go", "list", "-m", "-f", "{{.Dir}}", nfd], check=True, capture_output=True, text=True, cwd=GO_TOOLS,
                                    env=go_environment()).stdout.strip()
            for manifest in ("nfd-crds/nfd-api-crds.yaml", "rbac/master-clusterrole.yaml", "rbac/worker-role.yaml"):
                shutil.copyfile(Path(source, "deployment/base", manifest), scratch / Path(manifest).name)
    return target


def images() -> Path:
    busybox = packages() / "sbin/busybox"
    made_of = (HERE / "pause.c", Path(oci.__file__), Path(debian.__file__), busybox, Path(debian.LIBRARIES, "libc.so.6"))
    target = cache() / "bench" / f"images-{key(*made_of, 'busybox with its links')}"
    with building(target) as scratch:
        if scratch:
            run("gcc", "-Os", "-static", "-o", scratch / "pause", HERE / "pause.c")
            oci.write("registry.local/pause:1", scratch / "pause.tar", {"/pause": scratch / "pause"}, entrypoint="/pause")
            applets = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split()
            links = {f"/bin/{Path(applet).name}": "->busybox" for applet in applets if applet != "busybox"}
            oci.write("registry.local/busybox:1", scratch / "busybox.tar", {"/bin/busybox": busybox, "/tmp": "DIR"} | links)
            debian.write(scratch / "debian.tar", busybox)
    return target


def of_module(name: str, module: tuple[str, str], folder: str) -> Path:
    """The YAML files of a folder of a Go module."""
    target = cache() / "bench" / f"{name}-{key(*module)}"
    with building(target) as scratch:
        if scratch:
            version, checksum = module
            with tempfile.TemporaryDirectory(dir=scratch.parent) as outside:
                said = subprocess.run(["go", "mod", "download", "-json", version], check=True, capture_output=True, text=True, cwd=outside,
                                      env=go_environment()).stdout
            about = json.loads(said)
            assert about["Sum"] == checksum, f"{version} has the checksum {about['Sum']}, not {checksum}"
            for file in Path(about["Dir"], folder).glob("*.yaml"):
                shutil.copyfile(file, scratch / file.name)
    return target


def monitor_definitions() -> Path:
    """The folder of prometheus-operator's CRDs, one file each."""
    return of_module("monitor-definitions", MONITORS, "example/prometheus-operator-crd")


def gpu_operator_definitions() -> Path:
    """The folder of the CRDs of NVIDIA's GPU Operator, one file each."""
    return of_module("gpu-operator-definitions", GPU_OPERATOR, "config/crd/bases")


class Parts:
    """The locations of all parts; builds what is missing. `release`: which Kubernetes, "current" or "older"."""

    def __init__(self, release: str = "current"):
        self.packages, self.kubernetes, self.peer, self.tools, self.images = packages(), kubernetes(release), peer(), tools(), images()
        self.version = module_version("k8s.io/kubernetes", RELEASES[release])
        self.path = f"{self.packages}/sbin:{self.kubernetes}:{self.peer}:{self.tools}"
        if release == "older":
            self.path = f"{containerd_older()}:{self.path}"
        self.cni = self.packages / "usr/lib/cni"
        self.runc = self.packages / "sbin/runc"
        self.pause = self.images / "pause"


if __name__ == "__main__":
    parts = Parts()
    print(parts.packages, containerd_older(), parts.kubernetes, kubernetes("older"), parts.peer, kubelet_devices(), parts.tools, parts.images, monitor_definitions(), gpu_operator_definitions(), sep="\n")
