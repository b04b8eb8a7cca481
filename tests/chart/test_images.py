"""The list of images that a site without access to the internet needs: every image of the chart, and of the drivers for its nodes."""
import subprocess
import sys

import pytest
import yaml

from conftest import ROOT

UBUNTU, RHEL = ("--system", "ubuntu", "22.04"), ("--system", "rhel", "9.4")


@pytest.fixture
def images(operator, tmp_path):
    def listed(*words, values: dict | None = None) -> subprocess.CompletedProcess:
        file = tmp_path / "values.yaml"
        file.write_text(yaml.safe_dump(values or {}))
        return subprocess.run([sys.executable, ROOT / "deploy/helm/images", "-f", file, *words], capture_output=True, text=True,
                              env={"HELM": str(operator.helm), "PATH": "/usr/bin:/bin"})
    return listed


def lines(done: subprocess.CompletedProcess) -> list[str]:
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_one_image_serves_all_operands(images, operator):
    assert lines(images("--set", "driver.enabled=false")) == [operator.image()]
    assert lines(images(values={"driver": {"enabled": False}, "penstock": {"image": {"registry": "r.example:5000", "tag": "2"}}})) == ["r.example:5000/penstock:2"]
    digest = "sha256:" + "0a" * 32
    assert lines(images(values={"driver": {"enabled": False}, "global": {"imageRegistry": "r.example"}, "penstock": {"image": {"digest": digest}}})) == [
        f"r.example/penstock@{digest}"]
    many = {"driver": {"enabled": False}, "toolkit": {"repository": "nvcr.io/x", "image": "y", "version": "z"}, "dcgmExporter": {"version": "4"},
            "operator": {"cleanupCRD": True}}
    assert lines(images(values=many)) == [operator.image()]


def test_a_driver_has_an_image_for_each_system(images, operator):
    assert lines(images(*UBUNTU, *RHEL, "--system", "rocky", "9.4", "--set", "driver.version=580.1")) == [
        operator.image(), "nvcr.io/nvidia/driver:580.1-rhel9.4", "nvcr.io/nvidia/driver:580.1-rocky9", "nvcr.io/nvidia/driver:580.1-ubuntu22.04"]
    assert lines(images("--set", "driver.version=sha256:12"))[1:] == ["nvcr.io/nvidia/driver@sha256:12"]
    refused = images()
    assert refused.returncode == 1 and "--system ubuntu 22.04" in refused.stderr and not refused.stdout


def test_a_precompiled_driver_has_one_for_each_kernel(images):
    precompiled = ("--set", "driver.usePrecompiled=true", "--set", "driver.version=580")
    assert lines(images(*precompiled, *UBUNTU, "5.15.0-91-generic", "5.15.0-92-generic", *RHEL, "5.14.0-427.13.1.el9_4.x86_64"))[1:] == [
        "nvcr.io/nvidia/driver:580-5.14.0-427.13.1.el9.4-rhel9.4", "nvcr.io/nvidia/driver:580-5.15.0-91-generic-ubuntu22.04",
        "nvcr.io/nvidia/driver:580-5.15.0-92-generic-ubuntu22.04"]
    refused = images(*precompiled, *UBUNTU)
    assert refused.returncode == 1 and "--system ubuntu 22.04 KERNEL" in refused.stderr


def test_drivers_of_other_objects_are_listed_too(images):
    values = {"driver": {"nvidiaDriverCRD": {"enabled": True}, "version": "1"},
              "penstock": {"spec": {"agent": {"image": "r.example/agent:1"},
                                    "drivers": [{"name": "a", "image": {"repository": "r.example", "image": "driver", "version": "2"}}]}},
              "extraObjects": [{"apiVersion": "nvidia.com/v1alpha1", "kind": "NVIDIADriver", "metadata": {"name": "b"},
                                "spec": {"repository": "r.example", "image": "other", "version": "3", "driverType": "gpu"}},
                               {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c"},
                                "spec": {"initContainers": [{"name": "d", "image": "r.example/init"}], "containers": [{"name": "e", "image": "r.example/main"}]}}]}
    assert lines(images(*UBUNTU, values=values))[1:] == ["nvcr.io/nvidia/driver:1-ubuntu22.04", "r.example/agent:1", "r.example/driver:2-ubuntu22.04",
                                                         "r.example/init", "r.example/main", "r.example/other:3-ubuntu22.04"]


def test_what_helm_refuses_and_half_a_system_are_errors(images):
    refused = images("--set", "nonsense=1")
    assert refused.returncode == 1 and "nonsense" in refused.stderr
    half = images("--system", "ubuntu")
    assert half.returncode == 2 and "VERSION_ID" in half.stderr
