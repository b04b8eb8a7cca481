"""Every flag and variable in the help of NVIDIA's device plugin and GPU Feature Discovery, and its meaning in Penstock."""
import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

import differences
import downloads

PROGRAMS = {"nvidia-device-plugin": "nvidia-device-plugin", "gpu-feature-discovery": "gpu-feature-discovery"}
# A value of each flag other than its default. PLUMBING are flags for NVIDIA's own pod, and flags of every program.
VALUES = {
    "--cdi-annotation-prefix": "a.b/", "--dev-root": "/dev/of/host", "--device-discovery-strategy": "nvml", "--device-id-strategy": "index",
    "--device-list-strategy": "cdi-cri", "--driver-root": "/run/nvidia/driver", "--driver-root-ctr-path": "/driver", "--fail-on-init-error": "true",
    "--gds-enabled": "true", "--imex-channel-ids": "0", "--imex-required": "true", "--kubelet-socket": "/k/device-plugins/kubelet.sock",
    "--machine-type-file": "/m", "--mig-strategy": "single", "--mofed-enabled": "true", "--no-timestamp": "true", "--nvidia-cdi-hook-path": "/opt/nvidia-ctk",
    "--oneshot": "true", "--output-file": "/f/gfd", "--pass-device-specs": "true", "--sleep-interval": "90s", "--use-node-feature-api": "true"}
PLUMBING = {"--config-file", "--mps-root", "--node-name", "--help", "--version", "--kube-api-burst", "--kube-api-qps", "--kubeconfig", "--namespace"}


def options(program: str) -> dict[str, list[str]]:
    """The flags -> their variables, from the program's help."""
    text = subprocess.run([downloads.nvidia_programs() / program, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    text = re.sub(r"\n {20,}", " ", text)
    return {re.match(r"--[-\w]+", line).group(): re.findall(r"\$(\w+)", line) for line in map(str.strip, text.splitlines()) if line.startswith("--")}


@pytest.fixture
def outcome(request, tmp_path):
    penstock = Path(request.config.getoption("--programs")).resolve() / "penstock"

    def outcome(program: str, container: dict) -> str:
        """The result of `penstock migrate` for a container with one setting."""
        file = tmp_path / "manifest.yaml"
        pod = {"containers": [{"name": "c", "image": "k8s-device-plugin", "command": [program], **container}]}
        file.write_text(yaml.safe_dump({"kind": "DaemonSet", "metadata": {"name": "d"}, "spec": {"template": {"spec": pod}}}))
        done = subprocess.run([penstock, "migrate", "--manifests", file, "-o", "json"], capture_output=True, text=True, timeout=60)
        plan = json.loads(done.stdout)
        said = {kind: [line for line in plan[kind] if line.startswith("DaemonSet d: ")] for kind in ("problems", "notYet", "remarks")}
        if any("is not a setting of the plugin" in line for line in said["remarks"]):
            return "unknown"
        return "refused" if said["problems"] else "not yet" if said["notYet"] else "remark" if said["remarks"] else "the same"
    return outcome


def test_every_setting_means_the_same_or_is_listed(outcome):
    listed, differ = differences.table("Settings"), {}
    for program in PROGRAMS:
        found = options(program)
        assert len(found) > 12, found
        for flag, variables in found.items():
            if flag in PLUMBING:
                continue
            value = VALUES[flag]
            outcomes = {outcome(program, {"args": [f"{flag}={value}"]})}
            outcomes |= {outcome(program, {"env": [{"name": name, "value": value}]}) for name in variables}
            assert len(outcomes) == 1, f"{flag} and {variables} of {program}: {outcomes}"
            if outcomes != {"the same"}:
                differ[flag] = outcomes.pop()
    assert differ == {flag: cells[0] for flag, cells in listed.items()}
