"""Prints the state of a failed scenario's cluster briefly: pods with reasons, recent events, the
agents' reports of their nodes. Asks the API server, and reports where it does not answer."""
import json

from api import Api, RequestFailed

LINES, WIDTH, EVENTS = 60, 300, 25


def tail(text: str, lines: int = LINES) -> str:
    return "\n".join(line[:WIDTH] for line in text.splitlines()[-lines:])


def pod(one: dict) -> str:
    """One line: pod, node, state, and reason."""
    meta, status = one["metadata"], one["status"]
    containers = status.get("containerStatuses", [])
    states = [f"{kind}: {state.get('reason', '')} {state.get('message', '')}".strip()
              for container in containers for kind, state in container.get("state", {}).items()
              if kind != "running"]
    waits = [condition.get("message", "") for condition in status.get("conditions", [])
             if condition["status"] == "False"]
    ready, restarts = (sum(container[field] for container in containers)
                       for field in ("ready", "restartCount"))
    leaving = ["being deleted"] if "deletionTimestamp" in meta else []
    reasons = [*leaving, status.get("reason"), status.get("message"), *states, *waits]
    return (f"{meta['namespace']}/{meta['name']} on {one['spec'].get('nodeName', '-')}: "
            f"{status['phase']}, {ready} of {len(one['spec']['containers'])} ready, "
            f"{restarts} restarts. {'; '.join(filter(None, reasons))}")[:WIDTH]


def when(event: dict) -> str:
    return (event.get("lastTimestamp") or event.get("eventTime")
            or event["metadata"]["creationTimestamp"])


def event(one: dict) -> str:
    about = one["involvedObject"]
    return (f"{when(one)[11:19]} {one.get('reason')} {about.get('kind')}/{about.get('name')}: "
            f"{one.get('message', '')}")[:WIDTH]


def node_state(one: dict) -> str:
    facts = {key: value for key, value in one.items()
             if key not in ("apiVersion", "kind", "metadata")}
    lines = [f"  {key}.{name}: {json.dumps(value)}"[:WIDTH] for key, its in facts.items()
             for name, value in (its.items() if isinstance(its, dict) else [("", its)])]
    return "\n".join([one["metadata"]["name"], *lines])


def of_cluster(api: Api) -> list[tuple[str, str]]:
    """Titles and texts."""
    def all_of(kind: str) -> list[dict]:
        return api.get(kind, namespace="")["items"]

    def last_events() -> list[dict]:
        return sorted(all_of("events"), key=when)[-EVENTS:]
    asked = {"pods": lambda: [pod(one) for one in all_of("pods")],
             "latest events": lambda: [event(one) for one in last_events()],
             "NodeStates": lambda: [node_state(one) for one in all_of("nodestates")]}
    said = []
    for title, ask in asked.items():
        try:
            said.append((title, "\n".join(ask())))
        except RequestFailed as error:
            if error.code != 404:  # no NodeStates where their definition is not installed
                said.append((title, str(error)))
    return said
