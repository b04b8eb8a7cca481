"""Areas follow the tables of docs/architecture.md, and those tables match the tree."""
from pathlib import Path

import pytest

import tree
from areas import Areas, matches

SOURCE = Path(__file__).resolve().parents[2]
TEXT = """
<!-- include table -->
| room | may include |
|---|---|
| `src/low/inner` | |
| `src/low` | `src/low/inner` |
| `src/high/*` | `src/low` |
<!-- end -->
<!-- area table -->
| paths | labels |
|---|---|
| `docs` | |
| `src/low` | `dear` `dearer` |
| `src/high/*/testing` `src/high/a` | `dearer` |
<!-- end -->
"""


@pytest.fixture
def areas():
    return Areas(TEXT)


@pytest.mark.parametrize("path, room", [
    ("src/low/inner/a.cc", "src/low/inner"), ("src/low/a.cc", "src/low"),
    ("src/high/x/a.cc", "src/high/x"), ("src/lowest/a.cc", None), ("docs/a.md", None)])
def test_a_path_is_in_the_first_room_that_fits(areas, path, room):
    assert areas.room(path) == room


@pytest.mark.parametrize("paths, labels", [
    ([], set()), (["docs/a.md"], set()), (["src/low/a.cc"], {"dear", "dearer"}),
    (["src/high/a/b.cc"], {"dearer"}), (["src/high/b/testing/b.cc", "docs/x"], {"dearer"})])
def test_the_first_row_that_fits_a_path_says_what_it_concerns(areas, paths, labels):
    assert areas.chosen(paths) == labels


@pytest.mark.parametrize("path", ["new/file", "src/high/b/c.cc", "documents/a", "Makefile"])
def test_a_path_that_no_row_knows_concerns_everything(areas, path):
    assert areas.chosen(["docs/a.md", path]) == {"dear", "dearer"}


def test_every_path_of_the_area_table_is_there():
    names = tree.manifest(SOURCE)
    patterns = Areas.of(SOURCE).patterns
    gone = [one for one in patterns if not any(matches(one, name) for name in names)]
    assert patterns and gone == []


@pytest.mark.parametrize("path", [
    "src/operator/driver/driver_rollout.cc", "src/app/operator/operator_program.cc",
    "src/protocol/kube/informer.cc", "deploy/crds/nvidia.com_clusterpolicies.yaml",
    "deploy/helm/gpu-operator/values.yaml"])
def test_what_an_older_kubernetes_is_sent_is_tried_on_one(path):
    assert (SOURCE / path).exists() and "older" in Areas.of(SOURCE).chosen([path])
