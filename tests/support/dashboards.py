"""Evaluates dashboards like Grafana: fills in variables with values from Prometheus and waits for the results of queries."""
import json
import re
import time
from pathlib import Path

from node import wait_until

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "deploy/dashboards").glob("*.json"))
CONSOLE = ROOT / "deploy/dashboards/console/gpu.json"  # for the OpenShift console, in another format


def load(name: str) -> dict:
    return json.loads((ROOT / f"deploy/dashboards/{name}.json").read_text())


def panels(dashboard: dict) -> list[dict]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def filled(query: str, values: dict[str, str]) -> str:
    return re.sub(r"\$\{?(\w+)\}?", lambda name: values[name.group(1)], query)


def chosen(prometheus, dashboard: dict, preferred: str = "") -> dict[str, str]:
    """The value that Grafana would use for each variable: all results of its query if it allows several values; else the preferred one, or the
    first. A preferred node is waited for. Series that are away for a moment, after a scrape that came late, count."""
    values = {"__rate_interval": "30s", "__interval": "1s", "__range": "5m", "datasource": "prometheus"}
    for variable in dashboard["templating"]["list"][1:]:
        selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"]).groups()

        def results() -> list[str]:
            recent = f"last_over_time({filled(selector, values)}[30s])"  # noqa: B023
            return sorted({series["metric"].get(label, "") for series in prometheus.query(recent)} - {""})  # noqa: B023

        def complete() -> list[str]:
            found = results()
            return found if variable["name"] != "node" or not preferred or preferred in found else []  # noqa: B023
        found = wait_until(complete, f"values of the variable {variable['name']}", every=0.5, seen=results)
        every = "|".join(re.escape(one).replace("\\", "\\\\") for one in found)
        values[variable["name"]] = f"({every})" if variable["multi"] else preferred if preferred in found else found[0]
    return values


def queries(dashboard: dict, values: dict[str, str], *titles: str) -> list[tuple[str, str]]:
    """Title and query of each panel, or of the panels with these titles."""
    return [(panel["title"], filled(target["expr"], values)) for panel in panels(dashboard) if not titles or panel["title"] in titles
            for target in panel["targets"]]


def without_answer(prometheus, asked: list[tuple[str, str]], seconds: float = 60) -> list[str]:
    """The queries that still have no result after some time: some need two or three scrapes."""
    open_ones, deadline = list(asked), time.monotonic() + seconds
    while True:
        open_ones = [one for one in open_ones if not prometheus.query(one[1])]
        if not open_ones or time.monotonic() > deadline:
            return [f"{panel}: {query}" for panel, query in open_ones]
        time.sleep(0.5)
