"""The dashboard for the monitoring pages of the OpenShift console, which draw panels of Grafana's older kinds: graph, singlestat, table. Its queries read
DCGM's names, with the label `hostname` of the page itself: the cluster's Prometheus adds no label `node`."""
import itertools

HOST = 'hostname=~"$hostname"'
GPU = "{{hostname}} GPU {{gpu}}"
MIB, MHZ = 1048576, 1000000


def _variable(name: str, label: str, query: str) -> dict:
    return {"type": "query", "name": name, "label": label, "datasource": "prometheus", "query": query, "refresh": 2, "sort": 1, "multi": True,
            "includeAll": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"}, "options": [], "hide": 0, "regex": ""}


def _targets(expr: str, legend: str = "", **more) -> list[dict]:
    return [{"expr": expr, "legendFormat": legend, "refId": "A", "intervalFactor": 2} | more]


def graph(title: str, unit: str, expr: str, legend: str = GPU, stacked: bool = False) -> dict:
    return {"type": "graph", "title": title, "datasource": "prometheus", "targets": _targets(expr, legend, format="time_series"), "stack": stacked, "fill": 1,
            "linewidth": 1, "lines": True, "legend": {"show": True}, "nullPointMode": "null", "span": 6, "xaxis": {"mode": "time", "show": True},
            "yaxes": [{"format": unit, "min": 0, "show": True}, {"format": "short", "show": False}]}


def number(title: str, unit: str, expr: str) -> dict:
    return {"type": "singlestat", "title": title, "datasource": "prometheus", "targets": _targets(expr, instant=True), "format": unit, "span": 3,
            "valueName": "current", "decimals": 0}


def table(title: str, expr: str, **columns: str) -> dict:
    """Columns are labels with their titles; the value is not shown."""
    styles = [{"alias": heading, "pattern": label, "type": "string"} for label, heading in columns.items()]
    return {"type": "table", "title": title, "datasource": "prometheus", "targets": _targets(expr, format="table", instant=True), "span": 12,
            "styles": [*styles, {"pattern": "/.*/", "type": "hidden"}], "transform": "table"}


def _row(title: str, ids, *panels: dict) -> dict:
    return {"title": title, "showTitle": bool(title), "collapse": False, "height": "250px", "panels": [panel | {"id": next(ids)} for panel in panels]}


def of(name: str) -> str:
    return f"{name}{{{HOST}}}"


_ids = itertools.count(1)
DASHBOARD = {
    "uid": "penstock-console", "title": "GPUs / Penstock", "tags": ["gpu"], "schemaVersion": 14, "editable": False, "refresh": "30s", "timezone": "browser",
    "time": {"from": "now-1h", "to": "now"}, "templating": {"list": [_variable("hostname", "Node", "label_values(DCGM_FI_DEV_GPU_TEMP, hostname)")]},
    "rows": [
        _row("", _ids,
             number("GPUs", "none", f"count({of('DCGM_FI_DEV_GPU_TEMP')})"),
             number("Average utilization", "percent", f"avg({of('DCGM_FI_DEV_GPU_UTIL')})"),
             number("Power", "watt", f"sum({of('DCGM_FI_DEV_POWER_USAGE')})"),
             number("Memory in use", "bytes", f"{MIB} * sum({of('DCGM_FI_DEV_FB_USED')})")),
        _row("Use", _ids,
             graph("Utilization (percent)", "percent", of("DCGM_FI_DEV_GPU_UTIL")),
             graph("Memory in use", "bytes", f"{MIB} * {of('DCGM_FI_DEV_FB_USED')}"),
             graph("Utilization of the memory interface (percent)", "percent", of("DCGM_FI_DEV_MEM_COPY_UTIL")),
             graph("Clock of the processors", "hertz", f"{MHZ} * {of('DCGM_FI_DEV_SM_CLOCK')}")),
        _row("Power and heat", _ids,
             graph("Power (watts)", "watt", of("DCGM_FI_DEV_POWER_USAGE"), stacked=True),
             graph("Temperature (degrees Celsius)", "celsius", of("DCGM_FI_DEV_GPU_TEMP"))),
        _row("GPUs", _ids,
             table("GPUs", f"max by (hostname, gpu, modelName, UUID, DCGM_FI_DRIVER_VERSION) ({of('DCGM_FI_DEV_GPU_TEMP')})", hostname="Node", gpu="GPU",
                   modelName="Model", UUID="UUID", DCGM_FI_DRIVER_VERSION="Driver")),
    ]}
