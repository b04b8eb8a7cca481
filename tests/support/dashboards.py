"""Dashboards as Grafana would ask their queries: variables filled in with what a Prometheus says, answers waited for."""
import json
import re
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "deploy/dashboards").glob("*.json"))


def load(name: str) -> dict:
    return json.loads((ROOT / f"deploy/dashboards/{name}.json").read_text())


def panels(dashboard: dict) -> list[dict]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def filled(query: str, values: dict[str, str]) -> str:
    return re.sub(r"\$\{?(\w+)\}?", lambda name: values[name.group(1)], query)


def chosen(prometheus, dashboard: dict, preferred: str = "") -> dict[str, str]:
    """What Grafana puts in the place of each variable: all that its query answers where many may be chosen; else the one that is preferred, or
    the first."""
    values = {"__rate_interval": "30s", "__interval": "1s", "__range": "5m", "datasource": "prometheus"}
    for variable in dashboard["templating"]["list"][1:]:
        selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"]).groups()
        found = sorted({series["metric"].get(label, "") for series in prometheus.query(filled(selector, values))} - {""})
        assert found, f"the variable {variable['name']} has no values"
        every = "|".join(re.escape(one).replace("\\", "\\\\") for one in found)
        values[variable["name"]] = f"({every})" if variable["multi"] else preferred if preferred in found else found[0]
    return values


def queries(dashboard: dict, values: dict[str, str], *titles: str) -> list[tuple[str, str]]:
    """Title and query of each panel, or of those so called."""
    return [(panel["title"], filled(target["expr"], values)) for panel in panels(dashboard) if not titles or panel["title"] in titles
            for target in panel["targets"]]


def without_answer(prometheus, asked: list[tuple[str, str]], seconds: float = 60) -> list[str]:
    """Those that have no answer, after a while: some need a second scrape, or a third."""
    open_ones, deadline = list(asked), time.monotonic() + seconds
    while True:
        open_ones = [one for one in open_ones if not prometheus.query(one[1])]
        if not open_ones or time.monotonic() > deadline:
            return [f"{panel}: {query}" for panel, query in open_ones]
        time.sleep(0.5)
