"""penstock-runtime in place of runc: with runc itself, below podman, and with malicious images. Needs root. Device files of major 195 have no
driver here: open() fails with "No such device or address" if the container may open the file, and with "Operation not permitted" if its
device rules forbid it."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))

import cgroups  # noqa: E402
import images  # noqa: E402
from podman import Host  # noqa: E402

ALLOWED, FORBIDDEN, ABSENT = "No such device or address", "Operation not permitted", "No such file"
SHELL = ("/bin/dash", "/bin/cat", f"/lib/{images.MULTIARCH}/libc.so.6", images.loader())
HOOK = {"hookName": "createContainer", "path": "/usr/bin/true", "args": ["true"]}


def specification(hooks: list = (), mounts: list = ()) -> str:
    """A specification of two devices, each for separate containers, and a library."""
    def device(name: str, minors: list) -> dict:
        return {"name": name, "containerEdits": {"deviceNodes": [node(f"/dev/nvidia{minor}", minor) for minor in minors]}}

    def node(path: str, minor: int) -> dict:
        return {"path": path, "type": "c", "major": 195, "minor": minor, "permissions": "rw"}

    return json.dumps({
        "cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [device("0", [0]), device("GPU-1", [1]), device("all", [0, 1])],
        "containerEdits": {"env": ["NVIDIA_VISIBLE_DEVICES=void"], "deviceNodes": [node("/dev/nvidiactl", 255)], "hooks": list(hooks),
                           "mounts": [{"hostPath": "/etc/hostname", "containerPath": "/usr/lib/libcuda.so.550.54.15",
                                       "options": ["ro", "nosuid", "nodev", "rbind", "rprivate"]}, *mounts]}})


class Machine:
    """Folders of specifications and bundles, and calls of the runtime on them."""

    def __init__(self, home: Path, programs: Path):
        self.home, self.runtime = home, programs / "penstock-runtime"
        self.cdi, self.config, self.rootfs, self.log = home / "cdi", home / "config.toml", home / "rootfs", home / "log.json"
        for folder in (self.cdi, *(self.rootfs / name for name in ("proc", "dev", "sys", "tmp", "usr/lib"))):
            folder.mkdir(parents=True)
        for file in SHELL:
            target = self.rootfs / file[1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
        (self.rootfs / "bin/sh").symlink_to("dash")
        for minor in (0, 1):  # an image may contain device files: only the container's device rules protect
            os.mknod(self.rootfs / f"brought{minor}", 0o20666, os.makedev(195, minor))
        os.mkfifo(self.rootfs / "never")
        self.write_spec(specification())
        self.configure("")
        self.quick = home / "stub"  # replaces runc if only the bundle matters
        self.quick.write_text("#!/bin/sh\nexit 0\n")
        self.quick.chmod(0o755)

    def write_spec(self, text: str):
        (self.cdi / "nvidia.json").write_text(text)

    def configure(self, text: str, runtimes: str = '["runc"]'):
        self.config.write_text(f"{text}\n[nvidia-container-runtime]\nruntimes = {runtimes}\n"
                               f'[nvidia-container-runtime.modes.cdi]\nspec-dirs = ["{self.cdi}"]\n')

    def bundle(self, name: str, script: str, *environment: str, **more) -> Path:
        folder = self.home / name
        folder.mkdir(exist_ok=True)
        namespaces = [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]
        mounts = [{"destination": "/proc", "type": "proc", "source": "proc"}, {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}]
        (folder / "config.json").write_text(json.dumps({
            "ociVersion": "1.0.2", "root": {"path": str(self.rootfs)}, "mounts": mounts,
            "process": {"cwd": "/", "args": ["sh", "-c", script], "env": ["PATH=/bin", *environment], "user": {"uid": 0, "gid": 0}},
            "linux": {"namespaces": namespaces, "cgroupsPath": f"/penstock-test-{os.getpid()}/{name}",
                      "resources": {"devices": [{"allow": False, "access": "rwm"}]}}} | more))
        return folder

    def call(self, *words, config: Path | None = None, **options) -> subprocess.CompletedProcess:
        command = [self.runtime, "--root", self.home / "state", "--log", self.log, "--log-format", "json", *words]
        environment = os.environ | {"NVIDIA_CTK_CONFIG_FILE_PATH": str(config or self.config)}
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, env=environment,
                              stdin=subprocess.DEVNULL, **options)

    def run(self, name: str, script: str, *environment: str, **more) -> str:
        done = self.call("run", "--bundle", self.bundle(name, script, *environment, **more), name)
        assert "panic" not in done.stderr
        return done.stdout + done.stderr

    def prepare(self, name: str, *environment: str, **more) -> tuple[subprocess.CompletedProcess, dict]:
        """The bundle as the runtime changes it; no container is started."""
        self.configure(more.pop("config", ""), f'["{self.quick}"]')
        folder = self.bundle(name, "true", *environment, **more)
        done = self.call("create", "-b", folder, name)
        return done, json.loads((folder / "config.json").read_text())

    def error(self) -> str:
        return json.loads(self.log.read_text().splitlines()[-1])["msg"]

    def end(self):
        for state in (self.home / "state").glob("*"):
            self.call("delete", "--force", state.name)
        cgroups.remove(f"penstock-test-{os.getpid()}")
        shutil.rmtree(self.home)


@pytest.fixture(scope="session")
def programs(request):
    return request.config.getoption("--programs").resolve()


@pytest.fixture
def machine(programs):
    machine = Machine(Path(tempfile.mkdtemp(prefix="penstock-runtime-")), programs)
    yield machine
    machine.end()


LOOK = "for file in /dev/nvidia0 /dev/nvidia1 /brought0 /brought1; do (: <$file) 2>&1 && echo opened; done; cat /usr/lib/libcuda.so.550.54.15"


def looks(text: str) -> list[str]:
    """The result of opening each of the four files."""
    return [next((word for word in (ALLOWED, FORBIDDEN, ABSENT) if word in line), line) for line in text.splitlines()[:4]]


# With runc.

def test_a_container_opens_what_it_asked_for_and_nothing_else(machine):
    text = machine.run("one", LOOK, "NVIDIA_VISIBLE_DEVICES=0")
    assert looks(text) == [ALLOWED, ABSENT, ALLOWED, FORBIDDEN]
    assert text.splitlines()[4] == Path("/etc/hostname").read_text().strip()
    assert looks(machine.run("other", LOOK, "NVIDIA_VISIBLE_DEVICES=GPU-1")) == [ABSENT, ALLOWED, FORBIDDEN, ALLOWED]
    assert looks(machine.run("both", LOOK, "NVIDIA_VISIBLE_DEVICES=all")) == [ALLOWED, ALLOWED, ALLOWED, ALLOWED]


def test_a_container_that_asks_for_nothing_is_as_without_us(machine):
    for name, environment in (("unset", ()), ("void", ("NVIDIA_VISIBLE_DEVICES=void",))):
        folder = machine.bundle(name, LOOK, *environment)
        before = (folder / "config.json").read_bytes()
        done = machine.call("run", "-b", folder, name)
        assert looks(done.stdout + done.stderr) == [ABSENT, ABSENT, FORBIDDEN, FORBIDDEN]
        assert (folder / "config.json").read_bytes() == before


def test_none_is_the_driver_without_devices(machine):
    text = machine.run("none", LOOK + "; (: </dev/nvidiactl) 2>&1", "NVIDIA_VISIBLE_DEVICES=none")
    assert looks(text) == [ABSENT, ABSENT, FORBIDDEN, FORBIDDEN]
    assert ALLOWED in text.splitlines()[-1] and Path("/etc/hostname").read_text().strip() in text


def test_every_other_command_is_runcs_whatever_stands_in_our_files(machine):
    folder = machine.bundle("life", "read line </never", "NVIDIA_VISIBLE_DEVICES=0")
    made = subprocess.run([machine.runtime, "--root", machine.home / "state", "create", "-b", folder, "life"], timeout=120, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | {"NVIDIA_CTK_CONFIG_FILE_PATH": str(machine.config)})
    assert made.returncode == 0
    machine.config.write_text("this is [no TOML")
    machine.write_spec("nor is this JSON")
    assert json.loads(machine.call("state", "life").stdout)["status"] == "created"
    assert machine.call("start", "life").returncode == 0
    assert machine.call("kill", "life", "KILL").returncode == 0
    assert machine.call("delete", "--force", "life").returncode == 0
    gone = machine.call("state", "life")
    assert gone.returncode == 1 and "does not exist" in gone.stderr
    refused = machine.call("create", "-b", folder, "again")
    assert refused.returncode == 1 and f"{machine.config}:1:" in refused.stderr


def test_the_exit_status_and_the_version_are_runcs(machine):
    assert machine.call("run", "-b", machine.bundle("status", "exit 42", "NVIDIA_VISIBLE_DEVICES=0"), "status").returncode == 42
    version = machine.call("--version").stdout
    assert version.startswith("penstock-runtime version ") and "runc version " in version


def test_an_engine_finds_the_reason_where_runc_writes_it(machine):
    done = machine.call("create", "-b", machine.bundle("missing", "true", "NVIDIA_VISIBLE_DEVICES=7"), "missing")
    assert done.returncode == 1
    assert 'there is no CDI device "nvidia.com/gpu=7"' in machine.error() and "penstock cdi generate --output=/var/run/cdi/nvidia.yaml" in machine.error()
    assert done.stderr == f"penstock-runtime: {machine.error()}\n"
    assert machine.call("state", "missing").returncode == 1  # no container was created


def test_it_never_calls_itself(machine):
    for candidate in (machine.runtime, machine.home / "link", machine.home / "copy"):
        if candidate.name == "link":
            candidate.symlink_to(machine.runtime)
        if candidate.name == "copy":
            shutil.copy(machine.runtime, candidate)
        machine.configure("", f'["{candidate}", "runc"]')
        done = machine.call("state", "x")
        assert done.returncode == 1 and "is this program itself" in done.stderr


def test_unknown_fields_and_odd_bundles_stay(machine):
    done, bundle = machine.prepare("odd", "NVIDIA_VISIBLE_DEVICES=0", hooks=None, annotations=None, vendorExtension={"deep": [1, None, {"x": 0.5}]})
    assert done.returncode == 0
    assert bundle["vendorExtension"] == {"deep": [1, None, {"x": 0.5}]} and bundle["annotations"] is None
    folder = machine.home / "odd"
    (folder / "config.json").write_text("{}")
    assert machine.call("create", "-b", folder, "odd").returncode == 0
    assert (folder / "config.json").read_text() == "{}"
    for text in ("", "[]", '{"process": 3}', '{"process": {"env": [{}]}}'):
        (folder / "config.json").write_text(text)
        done = machine.call("create", "-b", folder, "odd")
        assert done.returncode == 1 and "config.json" in done.stderr and (folder / "config.json").read_text() == text


def test_twenty_at_once(machine):
    machine.write_spec(specification([HOOK]))
    with ThreadPoolExecutor(20) as pool:
        texts = list(pool.map(lambda i: machine.run(f"many{i}", LOOK, f"NVIDIA_VISIBLE_DEVICES={('0', 'GPU-1')[i % 2]}"), range(20)))
    for i, text in enumerate(texts):
        assert looks(text) == ([ALLOWED, ABSENT, ALLOWED, FORBIDDEN], [ABSENT, ALLOWED, FORBIDDEN, ALLOWED])[i % 2]


CALL = re.compile(r"^(?:\d+ +)?(\w+)\(", re.M)


def test_killed_at_any_system_call_the_bundle_is_the_old_or_the_new_one(machine):
    done, _ = machine.prepare("killed", "NVIDIA_VISIBLE_DEVICES=all")
    assert done.returncode == 0
    file = machine.home / "killed/config.json"
    new = file.read_text()
    machine.bundle("killed", "true", "NVIDIA_VISIBLE_DEVICES=all")
    old = file.read_text()
    assert old != new

    def create(*strace: str) -> tuple[int, list[Path]]:
        """Restores the old bundle and calls create. Returns its status and the files that it left beside the bundle's."""
        file.write_text(old)
        command = ["strace", "-f", "-qqq", *strace, machine.runtime, "create", "-b", machine.home / "killed", "killed"]
        done = subprocess.run(command, env=os.environ | {"NVIDIA_CTK_CONFIG_FILE_PATH": str(machine.config)}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
        left = [path for path in file.parent.iterdir() if path != file]
        for path in left:
            path.unlink()
        return done.returncode, left

    trace = machine.home / "trace"
    assert create("-o", str(trace))[0] == 0
    ours, _, runcs = trace.read_text().rpartition("execve(")
    calls = Counter(CALL.findall(f"{ours}execve(")[1:])  # without strace's own execve, at which no signal is injected
    assert "exit_group" in runcs
    outcomes = Counter()
    for call, count in calls.items():
        for when in range(1, count + 1):
            status, left = create("-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={when}")
            text = file.read_text()
            assert text in (old, new), f"killed at {call} {when}"
            outcomes["not killed" if status == 0 else "during" if left else "after" if text == new else "before"] += 1
    print(f"kills before, during and after the bundle's replacement: {dict(outcomes)}")
    assert outcomes["before"] and outcomes["during"] and outcomes["after"] and not outcomes["not killed"], outcomes


# Malicious images.

@pytest.mark.parametrize("environment", [
    "NVIDIA_VISIBLE_DEVICES=../../etc", "NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=../../etc/passwd", "NVIDIA_VISIBLE_DEVICES=0\n\x1b[2J/x",
    "NVIDIA_VISIBLE_DEVICES=" + "x" * (2 << 20) + "/", "NVIDIA_VISIBLE_DEVICES=" + ",".join(map(str, range(10000))),
    "NVIDIA_IMEX_CHANNELS=../../../etc", "NVIDIA_MIG_CONFIG_DEVICES=all"])
def test_hostile_values_are_refused_in_a_line_and_in_no_time(machine, environment):
    begin = time.monotonic()
    done, bundle = machine.prepare("hostile", environment)
    assert time.monotonic() - begin < 60
    assert done.returncode == 1 and len(done.stderr) < 5000
    assert all(c == "\n" or 0x20 <= ord(c) < 0x7f for c in done.stderr) and done.stderr.count("\n") == 1
    assert "devices" not in bundle["linux"]


def test_hostile_values_beside_a_good_request_change_nothing(machine):
    good, bundle = machine.prepare("good", "NVIDIA_VISIBLE_DEVICES=0")
    names = ["A=" + "y" * (2 << 20), "=", "NOTHING", "NVIDIA_VISIBLE_DEVICES_=all", "LD_LIBRARY_PATH=/proc/self/cwd", "NVIDIA_DRIVER_CAPABILITIES="]
    done, other = machine.prepare("good", *names, "NVIDIA_VISIBLE_DEVICES=0")
    assert good.returncode == done.returncode == 0
    assert other["linux"] == bundle["linux"] and other["mounts"] == bundle["mounts"]


def test_a_mount_list_cannot_lead_elsewhere(machine):
    root = "/var/run/nvidia-container-devices"
    for destination, works in ((f"{root}/../../../etc/passwd", True), (f"{root}/cdi/../../x", True), (f"{root}/cdi/a/../../../..", True),
                               (f"{root}/a/b", False), (f"{root}/cdi/nvidia.com/gpu/../../../0", None)):
        mounts = [{"destination": destination, "source": "/dev/null", "options": ["bind"]}]
        done, bundle = machine.prepare("list", mounts=mounts)
        if works:  # outside of the folder after normalization: no request
            assert done.returncode == 0 and bundle["mounts"] == mounts and "devices" not in bundle["linux"]
        elif works is None:  # device 0 after normalization
            assert done.returncode == 0 and bundle["linux"]["devices"][-1]["path"] == "/dev/nvidia0"
        else:
            assert done.returncode == 1 and "which is not a device name" in done.stderr


def test_cve_2025_23266_hooks_get_nothing_of_an_images_environment(machine):
    """NVIDIAScape: a hook without an environment of its own ran as root with the image's LD_PRELOAD, before the container was isolated."""
    report = machine.home / "report"
    spy = {"hookName": "createContainer", "path": "/bin/sh", "args": ["sh", "-c", f'echo "preload=[$LD_PRELOAD]" > {report}']}
    hostile = "LD_PRELOAD=/proc/self/cwd/poc.so"
    # The attack works without protection: the same hook, passed to runc by a specification without "env".
    folder = machine.bundle("attack", "true", hostile, hooks={"createContainer": [{"path": spy["path"], "args": spy["args"]}]})
    subprocess.run(["runc", "--root", machine.home / "state", "run", "-b", folder, "attack"], capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
    assert report.read_text() == "preload=[/proc/self/cwd/poc.so]\n"
    machine.write_spec(specification([spy]))
    report.unlink()
    machine.run("defence", "true", hostile, "NVIDIA_VISIBLE_DEVICES=0")
    assert report.read_text() == "preload=[]\n"


@pytest.mark.parametrize("mode", ["ldconfig", "mount", "hook", "disabled"])
def test_cve_2024_0132_and_2025_23359_nothing_is_mounted_from_inside_an_image(machine, mode):
    """NVIDIA's runtime mounted libraries of the image over the driver's, by paths that the image could redirect to the host."""
    compat = machine.rootfs / "usr/local/cuda/compat"
    compat.mkdir(parents=True)
    (compat / "libcuda.so.999.99").symlink_to("/etc/shadow")
    (machine.rootfs / "usr/local/cuda-99").symlink_to("../../../../../..")
    features = "features.allow-cuda-compat-libs-from-container = true\nfeatures.allow-ldconfig-from-container = true\n"
    features += f'nvidia-container-runtime.modes.legacy.cuda-compat-mode = "{mode}"\n'
    machine.configure("", f'["{machine.quick}"]')
    text = machine.config.read_text()
    machine.config.write_text(features + text.replace("[nvidia-container-runtime]\n", "nvidia-container-runtime.").replace(
        "[nvidia-container-runtime.modes.cdi]\n", "nvidia-container-runtime.modes.cdi."))
    folder = machine.bundle("compat", "true", "NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_DRIVER_CAPABILITIES=all")
    done = machine.call("create", "-b", folder, "compat")
    assert done.returncode == 0, done.stderr
    mounts = json.loads((folder / "config.json").read_text())["mounts"]
    assert sorted(mount["source"] for mount in mounts) == ["/etc/hostname", "proc", "tmpfs"]
    assert "allow-cuda-compat-libs-from-container: has no effect" in machine.log.read_text()


@pytest.mark.parametrize("config", [
    {"process": {"env": ["NVIDIA_VISIBLE_DEVICES=\x1b]0;x\x07\u202e\n" + "x" * (4 << 20)]}},
    {"process": {"env": ["A=" + "y" * (4 << 20), "NVIDIA_VISIBLE_DEVICES=all"]}},
    {"process": {"env": [f"V{i}=z" for i in range(100000)] + ["NVIDIA_VISIBLE_DEVICES=0"]}},
    "x" * (17 << 20), "[" * 100000, ""], ids=["escapes", "long", "many", "too large", "deep", "empty"])
def test_docker_gpus_under_plain_runc_fail_whatever_the_image_brings(machine, programs, config):
    """dockerd calls penstock-hook by this name, as root, with an environment that the image partly controls."""
    folder = machine.home / "hostile"
    folder.mkdir()
    (folder / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    hook = machine.home / "nvidia-container-runtime-hook"
    hook.symlink_to(programs / "penstock-hook")
    state = {"ociVersion": "1.0.2", "id": "c", "status": "creating", "pid": 1, "bundle": str(folder)}
    done = subprocess.run([hook, "prestart"], input=json.dumps(state), capture_output=True, text=True, timeout=60, cwd="/",
                          env={"LD_PRELOAD": "/proc/self/cwd/poc.so"})
    assert done.returncode == 1 and done.stderr.startswith("penstock-hook: ") and len(done.stderr) < 1000
    assert all(c == "\n" or c.isprintable() for c in done.stderr) and done.stderr.count("\n") == 1


def test_an_images_own_hook_of_the_older_runtime_does_not_act_beside_us(machine):
    stale = {"prestart": [{"path": "/usr/bin/nvidia-container-runtime-hook", "args": ["nvidia-container-runtime-hook", "prestart"]}]}
    _, bundle = machine.prepare("stale", "NVIDIA_VISIBLE_DEVICES=void", hooks=stale)
    assert bundle["hooks"]["prestart"] == []


def test_in_kubernetes_an_image_gets_nothing_by_environment_and_the_log_says_why(machine):
    pod = {"annotations": {"io.kubernetes.cri.container-type": "container"}}
    done, bundle = machine.prepare("pod", "NVIDIA_VISIBLE_DEVICES=all", **pod)
    assert done.returncode == 0 and "devices" not in bundle["linux"]
    assert "NVIDIA_VISIBLE_DEVICES is ignored" in machine.error() and "resources.limits" in machine.error()
    done, bundle = machine.prepare("pod", "NVIDIA_VISIBLE_DEVICES=all", config="accept-nvidia-visible-devices-envvar-when-unprivileged = true", **pod)
    assert [device["path"] for device in bundle["linux"]["devices"]] == ["/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia1"]
    device = {"destination": "/var/run/nvidia-container-devices/GPU-1", "source": "/dev/null"}
    done, bundle = machine.prepare("pod", "NVIDIA_VISIBLE_DEVICES=all", mounts=[device], **pod)
    assert [device["path"] for device in bundle["linux"]["devices"]] == ["/dev/nvidiactl", "/dev/nvidia1"]


def test_a_monitoring_pod_gets_all_gpus_by_the_ways_that_the_documentation_names(machine):
    """docs/containers.md, "Monitoring pods"; the key of config.toml is in the test above."""
    pod = {"annotations": {"io.kubernetes.cri.container-type": "container"}}
    everything = ["/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia1"]
    listed = {"destination": "/var/run/nvidia-container-devices/all", "source": "/dev/null"}
    done, bundle = machine.prepare("watch", mounts=[listed], **pod)
    assert done.returncode == 0 and [device["path"] for device in bundle["linux"]["devices"]] == everything
    privileged = {"cwd": "/", "args": ["true"], "env": ["NVIDIA_VISIBLE_DEVICES=all"], "capabilities": {"bounding": ["CAP_SYS_ADMIN"]}}
    done, bundle = machine.prepare("watch", process=privileged, **pod)
    assert done.returncode == 0 and [device["path"] for device in bundle["linux"]["devices"]] == everything
    capability = {"path": "/dev/nvidia-caps/nvidia-cap1", "type": "c", "major": 240, "minor": 1}
    management = {"cdiVersion": "0.5.0", "kind": "management.nvidia.com/gpu", "devices": [{"name": "all", "containerEdits": {"deviceNodes": [capability]}}]}
    (machine.cdi / "management.json").write_text(json.dumps(management))
    listed["destination"] = "/var/run/nvidia-container-devices/cdi/management.nvidia.com/gpu/all"
    done, bundle = machine.prepare("watch", mounts=[listed], **pod)
    assert done.returncode == 0 and [device["path"] for device in bundle["linux"]["devices"]] == [capability["path"]]


def test_what_a_pods_author_annotates_gives_no_device_under_crio(machine):
    """CRI-O copies a pod's annotations to its containers; it passes the kubelet's annotations in a separate list."""
    def annotations(own: dict, kind: str = "container") -> dict:
        return {"annotations": {"cdi.k8s.io/a": "nvidia.com/gpu=all", "io.kubernetes.cri-o.ContainerID": "c1", "io.kubernetes.cri-o.SandboxName": "pod",
                                "io.kubernetes.cri-o.ContainerType": kind, "io.kubernetes.cri-o.Annotations": json.dumps(own)} | own}

    done, bundle = machine.prepare("pod", **annotations({"io.kubernetes.container.hash": "1"}))
    assert done.returncode == 0 and "devices" not in bundle["linux"]
    assert '\\"cdi.k8s.io/a\\" is ignored' in machine.log.read_text()
    done, bundle = machine.prepare("pod", **annotations({"cdi.k8s.io/kubelet": "nvidia.com/gpu=GPU-1"}))
    assert [device["path"] for device in bundle["linux"]["devices"]] == ["/dev/nvidiactl", "/dev/nvidia1"]
    done, bundle = machine.prepare("pod", **annotations({"cdi.k8s.io/a": "nvidia.com/gpu=all"}, "sandbox"))
    assert done.returncode == 0 and "devices" not in bundle["linux"]


@pytest.mark.parametrize("name", ["management.nvidia.com/gpu=all", "nvidia.com/mig-caps=config", "acme.com/net=y"])
def test_an_image_names_no_device_of_another_kind(machine, name):
    kind, device = name.split("=")
    other = {"cdiVersion": "0.6.0", "kind": kind, "devices": [
        {"name": device, "containerEdits": {"deviceNodes": [{"path": "/dev/other", "type": "c", "major": 1, "minor": 3}]}}]}
    (machine.cdi / "other.json").write_text(json.dumps(other))
    done, bundle = machine.prepare("image", f"NVIDIA_VISIBLE_DEVICES={name}")
    assert done.returncode == 1 and name in machine.error() and "devices" not in bundle["linux"]
    privileged = {"cwd": "/", "args": ["true"], "env": [f"NVIDIA_VISIBLE_DEVICES={name}"], "capabilities": {"bounding": ["CAP_SYS_ADMIN"]}}
    done, bundle = machine.prepare("image", process=privileged)
    assert done.returncode == 0 and bundle["linux"]["devices"][0]["path"] == "/dev/other"


# With podman.

@pytest.fixture(scope="module")
def host():
    host = Host(Path(tempfile.mkdtemp(prefix="penstock-pod-")))
    (host.cdi / "nvidia.json").write_text(specification([HOOK]))
    yield host
    host.end()


OPEN = "(: </dev/nvidia0) 2>&1 | grep -o 'can.t open.*' | grep -c 'No such device'; ls /dev | grep -c nvidia"


def test_podman_with_our_runtime(host, programs):
    runtime = programs / "penstock-runtime"
    assert host.run([], OPEN, "-e", "NVIDIA_VISIBLE_DEVICES=0", runtime=runtime).split() == ["1", "2"]
    assert host.run([], OPEN + "; true", "-v", "/dev/null:/var/run/nvidia-container-devices/all", runtime=runtime).split() == ["1", "3"]
    assert host.run([], "ls /dev | grep -c nvidia; true", runtime=runtime).split() == ["0"]


def test_podman_shows_our_reason(host, programs):
    words = ("run", "--rm", "--network", "none", "--log-driver", "none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "-e",
             "NVIDIA_VISIBLE_DEVICES=7", "registry.local/debian:1", "true")
    done = host.podman(*words, check=False, runtime=programs / "penstock-runtime")
    assert done.returncode != 0 and 'there is no CDI device "nvidia.com/gpu=7"' in done.stderr.replace("\\", "")
