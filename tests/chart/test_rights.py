"""How requests in an audit log are matched with rules, which the end-to-end tests do with the rules of the chart."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from rights import CLUSTER, OWN, Right, granted, unused  # noqa: E402

SUBJECT = [{"kind": "ServiceAccount", "name": "a", "namespace": "here"}]


def role(kind: str, name: str, namespace: str, *rules: dict) -> list[dict]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return [{"kind": kind, "metadata": metadata, "rules": list(rules)},
            {"kind": f"{kind}Binding", "metadata": metadata, "roleRef": {"kind": kind, "name": name}, "subjects": SUBJECT}]


def rule(group: str, resource: str, *verbs: str, names: list | None = None) -> dict:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)} | ({"resourceNames": names} if names else {})


def event(verb: str, resource: str, user: str = "here:a", code: int = 0, **reference) -> dict:
    return {"verb": verb, "user": {"username": f"system:serviceaccount:{user}"}, "objectRef": {"resource": resource} | reference,
            "responseStatus": {"code": code}}


def test_each_verb_of_each_resource_is_a_right():
    objects = [*role("ClusterRole", "r", "", rule("", "nodes", "get", "patch")),
               *role("Role", "r", "here", rule("apps", "daemonsets", "list")), *role("Role", "r", "default", rule("", "events", "create"))]
    assert granted(objects, "here") == {Right("a", CLUSTER, "", "nodes", "get"), Right("a", CLUSTER, "", "nodes", "patch"),
                                        Right("a", OWN, "apps", "daemonsets", "list"), Right("a", "default", "", "events", "create")}


def test_a_request_uses_the_rights_of_its_account_group_resource_and_place():
    right = Right("a", OWN, "apps", "daemonsets", "patch")
    used = event("patch", "daemonsets", apiGroup="apps", namespace="here", name="x")
    assert not unused([right], [used])
    assert not unused([right], [event("patch", "daemonsets", "elsewhere:a", apiGroup="apps", namespace="elsewhere", name="x")])
    for other in (event("patch", "daemonsets", namespace="here"), event("get", "daemonsets", apiGroup="apps", namespace="here"),
                  event("patch", "daemonsets", "here:b", apiGroup="apps", namespace="here"), event("patch", "daemonsets", apiGroup="apps", namespace="other"),
                  event("patch", "daemonsets", apiGroup="apps", namespace="here", subresource="status"), used | {"user": {"username": "admin"}}):
        assert unused([right], [other]) == [right]


def test_an_apply_that_created_the_object_used_both_rights():
    create = Right("a", CLUSTER, "", "nodes", "create")
    assert not unused([create], [event("patch", "nodes", code=201, name="n")])
    assert unused([create], [event("patch", "nodes", code=200, name="n")]) == [create]


def test_a_name_of_a_rule_is_the_requests():
    objects = role("ClusterRole", "r", "", rule("", "namespaces", "get", names=["here"]))
    rights = granted(objects, "here")
    assert not unused(rights, [event("get", "namespaces", namespace="here", name="here")]) and unused(rights, [event("get", "namespaces", name="other")])
    assert "get namespaces named its own namespace" in str(next(iter(rights)))
