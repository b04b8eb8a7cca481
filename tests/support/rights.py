"""Which rules of Roles and ClusterRoles the requests in an API server's audit log have used."""
from typing import Iterable, NamedTuple

CLUSTER, OWN = "the cluster", "its own namespace"


class Right(NamedTuple):
    """What a rule permits to a ServiceAccount, independently of the namespace of the release."""

    account: str
    where: str  # CLUSTER, OWN, or the name of another namespace
    group: str
    resource: str
    verb: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        named = f" named {', '.join(self.names)}" if self.names else ""
        return f"{self.account} in {self.where}: {self.verb} {self.resource}{'.' + self.group if self.group else ''}{named}"


def granted(objects: Iterable[dict], namespace: str) -> set[Right]:
    """The rights that the bindings among these objects give, one for each verb of each resource."""
    objects = list(objects)
    roles = {(one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one.get("rules", []) for one in objects
             if one["kind"] in ("Role", "ClusterRole")}
    found = set()
    for binding in (one for one in objects if one["kind"] in ("RoleBinding", "ClusterRoleBinding")):
        space = binding["metadata"].get("namespace", "")
        where = CLUSTER if binding["kind"] == "ClusterRoleBinding" else OWN if space == namespace else space
        reference = binding["roleRef"]
        for rule in roles[reference["kind"], space if reference["kind"] == "Role" else "", reference["name"]]:
            # A name is that of the release's namespace, or the same everywhere.
            names = tuple(OWN if name == namespace else name for name in rule.get("resourceNames", ()))
            found |= {Right(subject["name"], where, group, resource, verb, names) for subject in binding["subjects"]
                      for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]}
    return found


def _verbs(event: dict) -> set[str]:
    """A server-side apply of an object that does not exist needs the right to create it, too."""
    created = event["verb"] == "patch" and event.get("responseStatus", {}).get("code") == 201
    return {"patch", "create"} if created else {event["verb"]}


def _uses(right: Right, account: str, namespace: str, event: dict) -> bool:
    asked = event.get("objectRef", {})
    resource = "/".join(filter(None, (asked.get("resource"), asked.get("subresource"))))
    space = asked.get("namespace", "")
    name = OWN if asked.get("name") == namespace else asked.get("name")
    return (right.account == account and right.where in (CLUSTER, OWN if space == namespace else space) and right.group == asked.get("apiGroup", "")
            and right.resource == resource and right.verb in _verbs(event) and (not right.names or name in right.names))


def unused(rights: Iterable[Right], events: Iterable[dict]) -> list[Right]:
    """The rights that none of these events of an audit log has used. An event of the stage ResponseComplete has the code of its answer."""
    distinct = {}
    for event in events:
        prefix, _, whose = event["user"]["username"].partition("system:serviceaccount:")
        if not prefix and whose:
            asked = event.get("objectRef", {})
            key = (whose, event["verb"], event.get("responseStatus", {}).get("code") == 201,
                   *(asked.get(part) for part in ("apiGroup", "resource", "subresource", "namespace", "name")))
            distinct[key] = (whose.split(":"), event)
    return sorted(right for right in rights if not any(_uses(right, account, namespace, event) for (namespace, account), event in distinct.values()))
