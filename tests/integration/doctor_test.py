"""`penstock runtime doctor` with this machine's podman and with containerd 1.7: its findings, and its proof from inside a container. Needs root;
runs in a mount namespace with its own /etc and /run."""
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parents[1] / "e2e/cluster"))

import images  # noqa: E402
import parts  # noqa: E402
from node import wait_until  # noqa: E402
from podman import Host  # noqa: E402

KIND = "example.com/gpu"
UNBACKED = os.makedev(240, 77)  # a number for local use: an allowed open() fails with ENXIO


@pytest.fixture(scope="module")
def host():
    if os.getuid() != 0:
        pytest.fail("containers with devices need root")
    host = Host(Path(tempfile.mkdtemp(prefix="penstock-doctor-")))
    containers = Path(f"/proc/{host.holder.pid}/root/etc/containers")
    (containers / "storage.conf").write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{host.home}/storage"\nrunroot = "{host.home}/podman"\n')
    (containers / "containers.conf").write_text('[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\nruntime = "runc"\n')
    os.mknod(host.home / "gpu0", stat.S_IFCHR | 0o666, UNBACKED)
    (host.home / "library").write_text("a library")
    yield host
    host.end()


@pytest.fixture
def doctor(request, host):
    program = request.config.getoption("--programs").resolve() / "penstock"

    def run(*options, **environment) -> tuple[int, list[dict]]:
        done = subprocess.run([*host.entering, program, "runtime", "doctor", "-o", "json", *options], capture_output=True, text=True, timeout=200,
                              stdin=subprocess.DEVNULL, env=os.environ | environment)
        assert done.stdout, done.stderr
        said = json.loads(done.stdout)
        assert said["well"] == (done.returncode == 0)
        return done.returncode, said["findings"]
    yield run
    host.clear()


def specification(host, version="0.5.0", **changes) -> dict:
    edits = {"deviceNodes": [{"path": "/dev/gpu0", "hostPath": f"{host.home}/gpu0"}],
             "mounts": [{"hostPath": f"{host.home}/library", "containerPath": "/usr/lib/libgpu.so.1", "options": ["ro", "bind"]}]} | changes
    return {"cdiVersion": version, "kind": KIND, "devices": [{"name": "0", "containerEdits": edits}]}


def bad(findings) -> list[str]:
    return [f"{one['what']}: {one['why']}" for one in findings if one["state"] == "bad"]


def test_it_proves_that_a_container_opens_its_devices(host, doctor):
    (host.cdi / "gpu.json").write_text(json.dumps(specification(host)))
    status, findings = doctor("--prove", "--engine", "podman")
    assert (status, bad(findings)) == (0, [])
    assert findings[-1]["what"] == "proof by podman"
    assert "0 device files and 1 mounted files could be opened; 1 device files are there that no driver serves" in findings[-1]["why"]


def test_it_proves_it_in_an_image_of_the_users(host, doctor):
    (host.cdi / "gpu.json").write_text(json.dumps(specification(host)))
    status, findings = doctor("--prove", "--device", f"{KIND}=0", "--image", images.NAME)
    assert (status, bad(findings)) == (0, [])


def test_a_device_that_the_control_group_keeps_shut_is_seen_from_inside(host, doctor):
    (host.cdi / "gpu.json").write_text(json.dumps(specification(host, deviceNodes=[
        {"path": "/dev/gpu0", "hostPath": f"{host.home}/gpu0", "permissions": "m"}])))
    status, findings = doctor("--prove")
    assert status == 1
    assert bad(findings) == ["proof by podman: /dev/gpu0 exists but cannot be opened: the container's control group does not allow it"]


def test_a_container_that_cannot_start_says_what_the_engine_said(host, doctor):
    (host.cdi / "gpu.json").write_text(json.dumps(specification(host, hooks=[
        {"hookName": "createContainer", "path": "/bin/false", "args": ["false"]}])))
    status, findings = doctor("--prove")
    assert status == 1
    assert [one for one in bad(findings) if "no container with example.com/gpu=0 starts" in one and "hook" in one]


def test_a_version_that_this_podman_cannot_read_is_found_before_it_is_tried(host, doctor):
    (host.cdi / "gpu.json").write_text(json.dumps(specification(host, version="0.7.0")))
    status, findings = doctor()
    assert status == 1
    finding = next(one for one in findings if one["state"] == "bad")
    assert re.match(r"podman \d+\.\d+", finding["what"]) and "0.7.0" in finding["why"]
    assert finding["file"] == "/var/run/cdi/gpu.json" and finding["write"] == ['cdiVersion: "0.5.0"']
    # Confirms the finding: podman does not find the device, and does after the line is written.
    refused = host.podman("run", "--rm", "--network", "none", "--device", f"{KIND}=0", images.NAME, "true", check=False)
    assert refused.returncode != 0 and KIND in refused.stderr
    (host.cdi / "gpu.json").write_text(json.dumps(specification(host, version="0.5.0")))
    assert doctor("--prove")[0] == 0


def test_two_files_with_one_device_and_one_that_names_what_is_gone(host, doctor):
    (host.cdi / "a.json").write_text(json.dumps(specification(host)))
    (host.cdi / "b.json").write_text(json.dumps(specification(host, mounts=[{"hostPath": "/none/lib", "containerPath": "/lib/x"}])))
    status, findings = doctor()
    assert status == 1
    assert bad(findings) == [
        f"specifications: /var/run/cdi/a.json and /var/run/cdi/b.json both define {KIND}=0, so that no container can use it; remove one of the files",
        "/var/run/cdi/b.json: no container with its devices can start: /none/lib, the source of a mount, does not exist"]


def test_it_leaves_nothing_behind(host, doctor, tmp_path):
    (host.cdi / "gpu.json").write_text(json.dumps(specification(host)))
    status, _ = doctor("--prove", TMPDIR=str(tmp_path))
    assert status == 0
    assert list(tmp_path.glob("penstock-*")) == []
    assert host.podman("ps", "--all", "--quiet").stdout == ""


# A distribution's configuration, adjusted to the privileges of this machine; CDI on or off.
CONTAINERD = """version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.local/pause:1"
  restrict_oom_score_adj = true
  enable_cdi = {cdi}
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""


class Containerd:
    """containerd 1.7 on the test host, with its usual paths."""

    def __init__(self, host: Host):
        self.host, self.process = host, None
        self.root = Path(f"/proc/{host.holder.pid}/root")
        self.folder = parts.packages() / "sbin"
        (self.root / "etc/containerd").mkdir(exist_ok=True)

    def start(self, cdi: str):
        (self.root / "etc/containerd/config.toml").write_text(
            f'root = "{self.host.home}/containerd"\n' + CONTAINERD.format(cdi=cdi))
        environment = os.environ | {"PATH": f"{self.folder}:{os.environ['PATH']}"}
        with open(self.host.home / "containerd.log", "a") as log:
            self.process = subprocess.Popen([*self.host.entering, self.folder / "containerd"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=environment)
        wait_until(lambda: self.ctr("version", check=False).returncode == 0, "containerd to answer")
        for archive in sorted(parts.images().glob("*.tar")):
            self.ctr("--namespace", "k8s.io", "images", "import", archive)

    def ctr(self, *words, check: bool = True) -> subprocess.CompletedProcess:
        return subprocess.run([*self.host.entering, self.folder / "ctr", *words], check=check, capture_output=True, timeout=60)

    def containers(self) -> str:
        return self.ctr("--namespace", "k8s.io", "containers", "list", "--quiet").stdout.decode()

    def stop(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.stop()
        shutil.rmtree(self.root / "etc/containerd")


@pytest.fixture
def containerd(host):
    containerd = Containerd(host)
    yield containerd
    containerd.end()


def test_it_proves_that_a_pod_of_containerd_opens_its_devices(host, doctor, containerd):
    containerd.start(cdi="true")
    (host.cdi / "gpu.json").write_text(json.dumps(specification(host)))
    status, findings = doctor("--prove", "--engine", "containerd", "--image", "registry.local/busybox:1")
    assert (status, bad(findings)) == (0, []), (host.home / "containerd.log").read_text()
    assert findings[-1]["what"] == "proof by containerd"
    assert containerd.containers() == "", "the pod is removed"


def test_a_containerd_with_cdi_off_is_found_and_its_pods_have_no_device(host, doctor, containerd):
    containerd.start(cdi="false")
    (host.cdi / "gpu.json").write_text(json.dumps(specification(host)))
    status, findings = doctor("--prove", "--engine", "containerd", "--image", "registry.local/busybox:1")
    assert status == 1
    off = next(one for one in findings if "has CDI disabled" in one["why"])
    assert re.match(r"containerd \d+\.\d+", off["what"]) and off["file"] == "/etc/containerd/config.toml"
    assert [line.strip() for line in off["write"]] == ['[plugins."io.containerd.grpc.v1.cri"]', "enable_cdi = true"]
    assert "proof by containerd: /dev/gpu0 is not in the container: it was not injected" in bad(findings)


def test_without_an_image_it_does_not_say_that_containerd_is_bad(host, doctor, containerd):
    containerd.start(cdi="true")
    (host.cdi / "gpu.json").write_text(json.dumps(specification(host)))
    status, findings = doctor("--prove", "--engine", "containerd")
    assert (status, findings[-1]["state"]) == (0, "unknown")
    assert "--image" in findings[-1]["why"]


def test_enroots_hook_needs_nvidias_toolkit(host, doctor):
    (host.cdi / "gpu.json").write_text(json.dumps(specification(host)))
    hook = Path(f"/proc/{host.holder.pid}/root/etc/enroot/hooks.d/98-nvidia.sh")
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\n")
    tools = host.home / "tools"
    tools.mkdir()
    try:
        status, findings = doctor()
        assert status == 1
        [enroot] = [one for one in findings if one["what"] == "enroot"]
        assert "executes nvidia-container-cli, which does not exist" in enroot["why"] and "docs/nvidia-toolkit.md" in enroot["why"]
        (tools / "nvidia-container-cli").write_text("#!/bin/sh\n")
        (tools / "nvidia-container-cli").chmod(0o755)
        _, findings = doctor(PATH=f"{tools}:{os.environ['PATH']}")
        assert [one["state"] for one in findings if one["what"] == "enroot"] == ["ok"]
    finally:
        hook.unlink()
