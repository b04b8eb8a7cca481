"""`penstock mig generate-config` on simulated machines with one GPU of each model that has MIG, compared with the layouts that NVIDIA publishes."""
from pathlib import Path

import pytest
import yaml

from node import Node

# By PCI ids of devices: the profiles with the most parts of each, then the layout all-balanced. Profiles, numbers and PCI ids are those of the default
# layouts in NVIDIA/mig-parted (deployments/systemd/config-default.yaml) and NVIDIA/gpu-operator (assets/state-mig-manager/0400_configmap.yaml).
PUBLISHED = {
    "0x20B010DE 0x20F110DE": ("1g.5gb=7 1g.5gb+me=1 1g.10gb=4 2g.10gb=3 3g.20gb=2 4g.20gb=1 7g.40gb=1", "1g.5gb=2 2g.10gb=1 3g.20gb=1"),
    "0x20B210DE 0x20B510DE 0x20F310DE 0x20F510DE 0x233010DE 0x233110DE 0x232210DE 0x232410DE": (
        "1g.10gb=7 1g.10gb+me=1 1g.20gb=4 2g.20gb=3 3g.40gb=2 4g.40gb=1 7g.80gb=1", "1g.10gb=2 2g.20gb=1 3g.40gb=1"),
    "0x20B710DE": ("1g.6gb=4 1g.6gb+me=1 2g.12gb=2 2g.12gb+me=1 4g.24gb=1", "1g.6gb=2 2g.12gb=1"),
    "0x232110DE 0x233A10DE": ("1g.12gb=7 1g.12gb+me=1 1g.24gb=4 2g.24gb=3 3g.47gb=2 4g.47gb=1 7g.94gb=1", "1g.12gb=2 2g.24gb=1 3g.47gb=1"),
    "0x234210DE 0x232910DE": ("1g.12gb=7 1g.12gb+me=1 1g.24gb=4 2g.24gb=3 3g.48gb=2 4g.48gb=1 7g.96gb=1", "1g.12gb=2 2g.24gb=1 3g.48gb=1"),
    "0x233510DE 0x233B10DE": ("1g.18gb=7 1g.18gb+me=1 1g.35gb=4 2g.35gb=3 3g.71gb=2 4g.71gb=1 7g.141gb=1", "1g.18gb=2 2g.35gb=1 3g.71gb=1"),
    "0x234810DE": ("1g.18gb=7 1g.18gb+me=1 1g.36gb=4 2g.36gb=3 3g.72gb=2 4g.72gb=1 7g.144gb=1", "1g.18gb=2 2g.36gb=1 3g.72gb=1"),
    "0x290110DE": ("1g.23gb=7 1g.23gb+me=1 1g.45gb=4 2g.45gb=3 3g.90gb=2 4g.90gb=1 7g.180gb=1", "1g.23gb=2 2g.45gb=1 3g.90gb=1"),
    "0x294110DE": ("1g.23gb=7 1g.23gb+me=1 1g.47gb=4 2g.47gb=3 3g.93gb=2 4g.93gb=1 7g.186gb=1", "1g.23gb=2 2g.47gb=1 3g.93gb=1"),
    "0x2BB510DE": ("1g.24gb=4 1g.24gb+me=1 1g.24gb+gfx=4 1g.24gb+me.all=1 1g.24gb-me=4 2g.48gb=2 2g.48gb+gfx=2 2g.48gb+me.all=1 2g.48gb-me=2 4g.96gb=1 "
                   "4g.96gb+gfx=1", "1g.24gb=2 2g.48gb=1"),
}
# These are not in either: the B300 is as in aws/sagemaker-hyperpod-cli#403, the others as the model with as much memory.
OTHERS = {
    "0x318210DE": ("1g.34gb=7 1g.34gb+me=1 1g.67gb=4 2g.67gb=3 3g.135gb=2 4g.135gb=1 7g.269gb=1", "1g.34gb=2 2g.67gb=1 3g.135gb=1"),
    "0x20BD10DE": PUBLISHED["0x20B010DE 0x20F110DE"],
    "0x20B810DE 0x20FD10DE": PUBLISHED["0x20B210DE 0x20B510DE 0x20F310DE 0x20F510DE 0x233010DE 0x233110DE 0x232210DE 0x232410DE"],
    "0x232C10DE": PUBLISHED["0x233510DE 0x233B10DE"],
    "0x292010DE": PUBLISHED["0x290110DE"],
}
MODELS = {  # a machine for each; the T4 beside them, which has no MIG, makes every rule name its models
    "ampere": "a100-sxm4-40gb a100-pcie-40gb a100-sxm4-80gb a100-pcie-80gb a100x a30-pcie-24gb a800-sxm4-40gb a800-sxm4-80gb a800-pcie-80gb ax800",
    "hopper": "h100-sxm-80gb h100-pcie-80gb h100-nvl-94gb h800-sxm-80gb h800-pcie-80gb h800-nvl-94gb h20-96gb h20-141gb h200-sxm-141gb h200-nvl-141gb "
              "gh200-96gb gh200-144gb",
    "blackwell": "b100-sxm-180gb b200-sxm-180gb b300-sxm-269gb gb200-186gb rtx-pro-6000-blackwell",
}


def parts_of(text: str) -> dict[str, int]:
    return {name: int(count) for name, count in (one.split("=") for one in text.split())}


def expected_layouts() -> dict[str, dict[str, dict[str, int]]]:
    """By PCI id: the parts of each layout."""
    layouts = {}
    for ids, (most, balanced) in (PUBLISHED | OTHERS).items():
        for pci_id in ids.split():
            of_model = {f"all-{name.replace('+', '.')}": {name: count} for name, count in parts_of(most).items()}
            layouts[pci_id] = of_model | {"all-balanced": parts_of(balanced), "all-enabled": {}}
    return layouts


def generated_layouts(text: str) -> dict[str, dict[str, dict[str, int]]]:
    layouts = {}
    for layout, rules in yaml.safe_load(text)["mig-configs"].items():
        for rule in rules:
            if layout == "all-disabled":
                assert rule == {"devices": "all", "mig-enabled": False}
                continue
            assert rule["devices"] == "all" and rule["mig-enabled"] is True
            ids = rule["device-filter"]
            for pci_id in [ids] if isinstance(ids, str) else ids:
                assert layout not in layouts.setdefault(pci_id, {}), "one rule for each model"
                layouts[pci_id][layout] = rule["mig-devices"]
    return layouts


@pytest.fixture
def machine_of(tmp_path, make_node):
    def make(models: str) -> Node:
        file = tmp_path / "machine.yaml"
        gpus = [f'  - {{model: {model}, pci: "0000:{bus:02x}:00.0", nvlinksDown: true}}\n' for bus, model in enumerate(models.split(), start=1)]
        file.write_text("name: lab\ndriver: 580.159.04\ngpus:\n" + "".join(gpus))
        return make_node(machine=str(file))
    return make


def test_generated_layouts_are_those_that_nvidia_publishes_for_each_model(machine_of):
    seen = {}
    for models in MODELS.values():
        node = machine_of(models + " t4")
        done = node.penstock("mig", "generate-config", "--driver-root", node.root)
        assert done.stderr == ""
        seen |= generated_layouts(done.stdout)
    assert seen.keys() == expected_layouts().keys()
    for pci_id, layouts in expected_layouts().items():
        assert seen[pci_id] == layouts, pci_id


def test_every_model_of_the_catalogue_with_mig_is_compared():
    catalogue = yaml.safe_load((Path(__file__).parents[2] / "sim/models/nvidia.yaml").read_text())["models"]

    def has_mig(model: dict) -> bool:
        return "mig" in model or "like" in model and has_mig(catalogue[model["like"]])
    assert {name for name, model in catalogue.items() if has_mig(model)} == set(" ".join(MODELS.values()).split())
