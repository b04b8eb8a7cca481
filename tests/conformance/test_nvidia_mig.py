"""NVIDIA's own programs on MIG devices of a simulated machine: GPU Feature Discovery and nvidia-ctk, which read them through go-nvml."""
import json
import subprocess

import pytest

import downloads
import nvidia_programs

# nvidia-ctk reads the table of capabilities from this fixed path.
IN_ITS_PROC = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0/proc/driver" /proc/driver && exec "$@"']


@pytest.fixture
def partitioned(start):
    """GPU 0 with 3g.20gb twice, GPU 1 with 1g.5gb twice, the others whole."""
    machine = start("dgx-a100")
    smi = machine.root / "usr/bin/nvidia-smi"
    for arguments in (["-mig", "1", "-i", "0,1"], ["mig", "-cgi", "9,9", "-C", "-i", "0"], ["mig", "-cgi", "19,19", "-C", "-i", "1"]):
        done = machine.command(smi, *arguments)
        assert done.returncode == 0, done.stdout
    return machine


def test_gpu_feature_discovery_labels_mig_devices(partitioned, tmp_path):
    file = tmp_path / "labels"
    nvidia_programs.run(partitioned.root, "gpu-feature-discovery", "--oneshot", "--no-timestamp", "--mig-strategy", "mixed", "--output-file", file)
    labels = dict(line.removeprefix("nvidia.com/").split("=", 1) for line in file.read_text().splitlines())
    expected = {"mig.capable": "true", "mig.strategy": "mixed", "gpu.count": "8",
                "mig-3g.20gb.count": "2", "mig-3g.20gb.memory": "19968", "mig-3g.20gb.multiprocessors": "42", "mig-3g.20gb.slices.gi": "3", "mig-3g.20gb.slices.ci": "3",
                "mig-3g.20gb.engines.copy": "3", "mig-3g.20gb.engines.decoder": "2", "mig-3g.20gb.product": "NVIDIA-A100-SXM4-40GB-MIG-3g.20gb",
                "mig-1g.5gb.count": "2", "mig-1g.5gb.memory": "4864", "mig-1g.5gb.multiprocessors": "14", "mig-1g.5gb.engines.decoder": "0"}
    assert {key: labels.get(key) for key in expected} == expected


def test_nvidia_ctk_names_mig_devices_and_their_capabilities(partitioned, tmp_path):
    file = tmp_path / "cdi.json"
    generate = ["cdi", "generate", "--mode=nvml", "--driver-root", partitioned.root, "--dev-root", partitioned.root, "--format=json", "--device-name-strategy=index"]
    done = subprocess.run([*IN_ITS_PROC, partitioned.root, downloads.nvidia_programs() / "nvidia-ctk", *generate, "--output", file],
                          env=nvidia_programs.environment(partitioned.root), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    devices = {device["name"]: [node["path"] for node in device["containerEdits"]["deviceNodes"]] for device in json.loads(file.read_text())["devices"]}
    capabilities = {name: sorted(path.rsplit("nvidia-cap")[-1] for path in nodes if "nvidia-caps/" in path) for name, nodes in devices.items() if ":" in name}
    # GPU instances 1 and 2 of GPU 0, 11 and 13 of GPU 1, each with compute instance 0.
    assert capabilities == {"0:0": ["12", "13"], "0:1": ["21", "22"], "1:0": ["237", "238"], "1:1": ["255", "256"]}
    assert any(path.endswith("/dev/nvidia0") for path in devices["0:0"]) and any(path.endswith("/dev/nvidia1") for path in devices["1:1"])
