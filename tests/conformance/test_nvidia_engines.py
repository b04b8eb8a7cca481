"""Configuration files of container engines: Penstock's changes compared with those of NVIDIA's
nvidia-ctk."""
import json
import subprocess
import tomllib
from pathlib import Path

import pytest

import downloads

RUNTIME = "/usr/bin/nvidia-container-runtime"
DOCKER = {
    "nothing": "",
    "no objects": "{}",
    "other settings": '{"log-driver": "journald", "features": {"buildkit": true}}',
    "another runtime, which is the default": json.dumps({
        "default-runtime": "crun", "runtimes": {"crun": {"path": "/usr/bin/crun"}}}),
    "the runtime at another place": json.dumps({
        "runtimes": {"nvidia": {"path": "/opt/nvidia-container-runtime", "args": []}}}),
}
CRIO = {
    "nothing": "",
    "other settings": '[crio.runtime]\nlog_level = "info"\n[crio.image]\npause_image = "p"\n',
    "another runtime, which is the default":
        '[crio.runtime]\ndefault_runtime = "crun"\n[crio.runtime.runtimes.crun]\n'
        'runtime_path = "/usr/bin/crun"\nruntime_type = "oci"\n',
    "the runtime at another place":
        '[crio.runtime.runtimes.nvidia]\nruntime_path = "/opt/nvidia-container-runtime"\n'
        'runtime_type = "oci"\n',
}
CRI = 'plugins."io.containerd.grpc.v1.cri"'
CONTAINERD = {
    "a version alone": "version = 2\n",
    "other settings": f'version = 2\nroot = "/data"\n[{CRI}]\nsandbox_image = "p"\n',
    "another runtime": f'version = 2\n[{CRI}.containerd.runtimes.crun]\n'
                       'runtime_type = "io.containerd.runc.v2"\n'
                       f'[{CRI}.containerd.runtimes.crun.options]\nBinaryName = "/usr/bin/crun"\n',
    "systemd's control groups": f'version = 2\n[{CRI}.containerd.runtimes.runc]\n'
                                'runtime_type = "io.containerd.runc.v2"\n'
                                f'[{CRI}.containerd.runtimes.runc.options]\nSystemdCgroup = true\n',
}
# nvidia-ctk writes these although they are containerd's defaults; Penstock omits them.
DEFAULTS = {"privileged_without_host_devices": False, "runtime_engine": "", "runtime_root": ""}
# Only Penstock writes these: the runtime gets the annotations that request CDI devices; and runc is
# named if the file named no runtime before, since containerd defines it implicitly only until then.
ANNOTATIONS = {"container_annotations": ["cdi.k8s.io/*"]}
RUNC = {"runtime_type": "io.containerd.runc.v2"}
CASES = [pytest.param(engine, text, id=f"{engine}, {what}")
         for engine, texts in (("docker", DOCKER), ("crio", CRIO), ("containerd", CONTAINERD))
         for what, text in texts.items()]


def parsed(file: Path) -> dict:
    return tomllib.loads(file.read_text()) if file.suffix == ".toml" else \
        json.loads(file.read_text())


def runtimes_of(settings: dict) -> dict:
    return settings["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]["runtimes"]


@pytest.mark.parametrize("options", [[], ["--cdi.enabled", "--nvidia-set-as-default"]],
                         ids=["the runtime", "with CDI, by default"])
@pytest.mark.parametrize("engine,text", CASES)
def test_an_engines_file_says_what_nvidia_ctk_makes_it_say(request, tmp_path, engine, text,
                                                           options):
    penstock = Path(request.config.getoption("--programs")).resolve() / "penstock"
    suffix = "json" if engine == "docker" else "toml"
    theirs, ours = tmp_path / f"theirs.{suffix}", tmp_path / f"ours.{suffix}"
    if text:
        theirs.write_text(text)
        ours.write_text(text)
    for command in (
            [downloads.nvidia_programs() / "nvidia-ctk", "runtime", "configure",
             f"--config={theirs}", f"--nvidia-runtime-path={RUNTIME}"],
            [penstock, "runtime", "configure", "--config", ours, "--drop-in", "", "--config-source",
             "file", "--state-dir", tmp_path / "state", "--runtime-path", RUNTIME]):
        done = subprocess.run([*command, f"--runtime={engine}", *options], text=True,
                              capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
    wanted, got = parsed(theirs), parsed(ours)
    if engine == "containerd":
        nvidia = runtimes_of(wanted)["nvidia"]
        for key, value in DEFAULTS.items():
            assert nvidia.pop(key, value) == value
        nvidia.update(ANNOTATIONS)
        if "runtimes" not in text:
            runtimes_of(wanted)["runc"] = RUNC
    if engine == "docker" and text and options:  # nvidia-ctk drops other features when it sets CDI
        wanted["features"] |= json.loads(text).get("features", {})
    assert got == wanted
