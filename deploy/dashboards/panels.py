"""Builds the dashboards' panels, variables, and grid positions, in the format of Grafana 10 and newer (schemaVersion 39). Independent of any metric."""
import itertools

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
GREEN, YELLOW, RED, BLUE = "green", "#EAB839", "red", "blue"
OK_ABOVE_ZERO = [(None, RED), (1, GREEN)]
BAD_ABOVE_ZERO = [(None, GREEN), (1, RED)]
COLUMNS = 24


# --- queries ------------------------------------------------------------------------------------------------------------------------------
def over_time(expr: str, legend: str = "") -> dict:
    return {"expr": expr, "legendFormat": legend or "__auto", "range": True, "instant": False, "format": "time_series"}


def now(expr: str, legend: str = "") -> dict:
    return {"expr": expr, "legendFormat": legend or "__auto", "range": False, "instant": True, "format": "time_series"}


def _targets(queries) -> list[dict]:
    return [{"refId": chr(ord("A") + n), "datasource": SOURCE, "editorMode": "code"} | query for n, query in enumerate(queries)]


# --- panels -------------------------------------------------------------------------------------------------------------------------------
def _steps(thresholds) -> dict:
    return {"mode": "absolute", "steps": [{"color": color, "value": value} for value, color in thresholds]}


def _panel(kind: str, title: str, queries, size: tuple[int, int], unit: str, description: str, options: dict, custom: dict | None = None,
           thresholds=((None, GREEN),), color: str = "palette-classic", low=None, high=None, mappings=(), overrides=()) -> dict:
    defaults = {"unit": unit, "color": {"mode": color}, "mappings": list(mappings), "thresholds": _steps(thresholds)}
    defaults |= {key: value for key, value in (("custom", custom), ("min", low), ("max", high)) if value is not None}
    return {"type": kind, "title": title, "description": description, "datasource": SOURCE, "targets": _targets(queries),
            "fieldConfig": {"defaults": defaults, "overrides": list(overrides)}, "options": options, "gridPos": {"w": size[0], "h": size[1]}}


def lines(title: str, unit: str, *queries: dict, size=(12, 8), stacked=False, low=0, high=None, description="", thresholds=None) -> dict:
    """Time series. Thresholds, if any, are drawn as lines."""
    custom = {"drawStyle": "line", "lineInterpolation": "linear", "lineWidth": 1, "fillOpacity": 25 if stacked else 8, "gradientMode": "none",
              "showPoints": "never", "spanNulls": False, "axisPlacement": "auto", "stacking": {"group": "A", "mode": "normal" if stacked else "none"},
              "thresholdsStyle": {"mode": "line" if thresholds else "off"}}
    options = {"legend": {"displayMode": "table", "placement": "bottom", "showLegend": True, "calcs": ["mean", "max", "lastNotNull"]},
               "tooltip": {"mode": "multi", "sort": "desc"}}
    return _panel("timeseries", title, queries, size, unit, description, options, custom, thresholds or ((None, GREEN),), low=low, high=high)


def number(title: str, unit: str, expr: str, size=(4, 4), thresholds=((None, BLUE),), description="", decimals=None) -> dict:
    """The current value in large type, with its time series behind it."""
    options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "orientation": "auto", "textMode": "value",
               "colorMode": "value", "graphMode": "area", "justifyMode": "auto"}
    panel = _panel("stat", title, [over_time(expr)], size, unit, description, options, thresholds=thresholds, color="thresholds")
    if decimals is not None:
        panel["fieldConfig"]["defaults"]["decimals"] = decimals
    return panel


def dial(title: str, unit: str, expr: str, low: float, high: float, thresholds, size=(4, 4), description="") -> dict:
    options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "orientation": "auto",
               "showThresholdLabels": False, "showThresholdMarkers": True}
    return _panel("gauge", title, [over_time(expr)], size, unit, description, options, thresholds=thresholds, color="thresholds", low=low, high=high)


def bars(title: str, unit: str, expr: str, legend: str, size=(12, 8), low=0, high=None, thresholds=((None, BLUE),), description="") -> dict:
    """The current value of each series as a bar."""
    options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "orientation": "horizontal",
               "displayMode": "gradient", "valueMode": "color", "showUnfilled": True, "minVizHeight": 12, "minVizWidth": 8}
    return _panel("bargauge", title, [now(expr, legend)], size, unit, description, options, thresholds=thresholds, color="thresholds", low=low,
                  high=high)


def states(title: str, expr: str, legend: str, values: dict[int, tuple[str, str]], size=(24, 8), description="") -> dict:
    """The state of each series over time: number -> (text, colour)."""
    mappings = [{"type": "value", "options": {str(value): {"text": text, "color": color, "index": index}
                                              for index, (value, (text, color)) in enumerate(values.items())}}]
    options = {"mergeValues": True, "showValue": "auto", "alignValue": "left", "rowHeight": 0.9,
               "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True}, "tooltip": {"mode": "single", "sort": "none"}}
    return _panel("state-timeline", title, [over_time(expr, legend)], size, "none", description, options,
                  {"lineWidth": 0, "fillOpacity": 80}, mappings=mappings)


def table(title: str, *columns: tuple[str, str, str], hide=(), size=(24, 8), sort: str = "", description="") -> dict:
    """One row for each set of labels. Columns are (name, unit, query); all queries have the same labels, which come first."""
    hidden = {name: True for name in ("Time", *hide)}
    letters = [chr(ord("A") + n) for n in range(len(columns))]
    # With one query Grafana names the column "Value", with several "Value #A".
    values = ["Value"] if len(columns) == 1 else [f"Value #{letter}" for letter in letters]
    overrides = [{"matcher": {"id": "byName", "options": name}, "properties": [{"id": "unit", "value": unit}]} for name, unit, _ in columns]
    panel = _panel("table", title, [now(expr) | {"format": "table"} for _, _, expr in columns], size, "none", description,
                   {"showHeader": True, "cellHeight": "sm", "sortBy": [{"displayName": sort, "desc": True}] if sort else []},
                   {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": True}, color="thresholds", overrides=overrides)
    rename = dict(zip(values, (name for name, _, _ in columns)))
    panel["transformations"] = [{"id": "merge", "options": {}},
                                {"id": "organize", "options": {"excludeByName": hidden, "renameByName": rename, "indexByName": {}}}]
    return panel


def words(text: str, size=(24, 2)) -> dict:
    return {"type": "text", "title": "", "options": {"mode": "markdown", "content": text}, "gridPos": {"w": size[0], "h": size[1]}}


# --- a whole dashboard --------------------------------------------------------------------------------------------------------------------
def choice(name: str, label: str, values: str, several: bool = True) -> dict:
    """A variable with values from a query: label_values(SELECTOR, LABEL). `several`: allows all of them, or any number."""
    return {"type": "query", "name": name, "label": label, "datasource": SOURCE, "query": {"query": values, "refId": name}, "refresh": 2, "sort": 3,
            "multi": several, "includeAll": several, "allValue": ".*" if several else None, "regex": "", "hide": 0, "options": [],
            "current": {"text": ["All"], "value": ["$__all"]} if several else {}, "skipUrlSync": False}


def _placed(rows: list[tuple[str, list[dict]]]) -> list[dict]:
    """Places the panels of titled rows from left to right and down; a panel that does not fit begins a new line."""
    placed, y, ids = [], 0, itertools.count(1)
    for title, panels in rows:
        if title:
            placed.append({"type": "row", "id": next(ids), "title": title, "collapsed": False, "panels": [],
                           "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1}})
            y += 1
        x = height = 0
        for panel in panels:
            width = panel["gridPos"]["w"]
            if x + width > COLUMNS:
                x, y, height = 0, y + height, 0
            placed.append(panel | {"id": next(ids), "gridPos": panel["gridPos"] | {"x": x, "y": y}})
            x, height = x + width, max(height, panel["gridPos"]["h"])
        y += height
    return placed


def dashboard(name: str, title: str, description: str, variables: list[dict], rows: list[tuple[str, list[dict]]]) -> dict:
    source = {"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus", "current": {}, "hide": 0,
              "includeAll": False, "multi": False, "options": [], "refresh": 1, "regex": "", "skipUrlSync": False}
    links = {"type": "dashboards", "title": "Penstock", "tags": ["penstock"], "asDropdown": True, "includeVars": True, "keepTime": True,
             "targetBlank": False, "icon": "external link", "tooltip": "", "url": ""}
    return {"uid": f"penstock-{name}", "title": f"Penstock / {title}", "description": description, "tags": ["penstock", "gpu"],
            "schemaVersion": 39, "version": 1, "editable": True, "graphTooltip": 1, "timezone": "browser", "refresh": "30s",
            "time": {"from": "now-1h", "to": "now"}, "timepicker": {}, "weekStart": "", "links": [links], "annotations": {"list": []},
            "templating": {"list": [source, *variables]}, "panels": _placed(rows)}
