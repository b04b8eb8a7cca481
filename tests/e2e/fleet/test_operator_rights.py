"""Least rights: each rule of the chart gpu-operator was used by a request of the suite's other scenarios, which all ran with these rules and no others; those that only
drivers need are shown in the suite of drivers (test_driver_rights.py). Runs last."""
import sys

import pytest
import yaml
from fleet import NAMESPACE, ROOT
from operators import CHART, OPERATOR

sys.path[:0] = [str(ROOT / "tests/support")]

from rights import Right, granted, unused  # noqa: E402

NAMESPACES = (NAMESPACE, OPERATOR)  # of the operator from plain objects, and of helm's
# Kinds that the server of the suite `older` does not have.
NEWER = ("servicemonitors", "resourceclaims")
# (account, resource, verb) -> why no request shows it; "*" stands for any but those.
UNSEEN = {
    **{(account, "*", "list"): "servers that do not stream lists: the suite `older`" for account in ("gpu-operator", "penstock")},
    ("gpu-operator", "resourceclaims", "list"): "served from 1.34, where lists are streamed",
    ("gpu-operator-uninstall", "clusterpolicies", "patch"): "shown for the other kinds; there the ClusterPolicy is not the release's",
    ("gpu-operator", "events", "patch"): "an Event of the same reason and text that comes again within minutes",
    ("penstock-cleanup", "nodes", "get"): "read again after a conflict",
    **{("penstock-cleanup", "nodefeatures", verb): "written by agents only where a policy says so" for verb in ("list", "delete")},
}
# (account, resource, verb) of the rules that only drivers need.
OF_DRIVERS = {("gpu-operator", "pods", "create"), ("gpu-operator", "pods", "delete"), ("gpu-operator", "pods/eviction", "create"),
              ("gpu-operator", "resourceclaims", "watch")}


def for_drivers(right: Right) -> bool:
    return (right.account, right.resource, right.verb) in OF_DRIVERS


def explained(right: Right) -> bool:
    def same(pattern: str, word: str) -> bool:
        return pattern == word or (pattern == "*" and word not in NEWER) or (pattern.startswith("*/") and word.endswith(pattern[1:]))

    return any(all(map(same, pattern, (right.account, right.resource, right.verb))) for pattern in UNSEEN)


def rights_of_the_chart(fleet) -> set[Right]:
    rights = set()
    for namespace in NAMESPACES:
        text = fleet.cluster.run("helm", "template", OPERATOR, CHART, "-n", namespace, "--kube-version", fleet.cluster.parts.version).stdout
        rights |= granted([one for one in yaml.safe_load_all(text) if one], namespace)
    assert rights
    return rights


def assert_used(rights: set[Right], fleet):
    left = unused(rights, fleet.audit.all())
    assert not left, "no request used, so remove from the chart, or use in a scenario:\n" + "\n".join(map(str, left))


@pytest.mark.usefixtures("whole_suite")
def test_every_rule_of_the_chart_was_used(fleet):
    assert_used({right for right in rights_of_the_chart(fleet) if not explained(right) and not for_drivers(right)}, fleet)
