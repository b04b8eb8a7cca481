"""Parts that several dashboards share: variables, selectors, colours of values. Every series has the label `node`, which the scrape
configuration sets (docs/monitoring.md)."""
from panels import GREEN, RED, YELLOW, choice

NODE = choice("node", "Node", "label_values(accelerator_info, node)")
ONE_NODE = choice("node", "Node", "label_values(accelerator_info, node)", several=False)

FILL = [(None, GREEN), (0.8, YELLOW), (0.95, RED)]
HEAT = [(None, GREEN), (80, YELLOW), (90, RED)]
HEALTHY = [(None, RED), (0.9, YELLOW), (1, GREEN)]
SOME = [(None, GREEN), (1, YELLOW)]

GPU = "{{node}} {{index}}"  # the index, which is how users name a GPU
RATE = "[$__rate_interval]"


def family(name: str, *chosen: str, **labels: str) -> str:
    """A selector: `chosen` are names of variables, which equal their labels' names; values of `labels` may begin with an operator."""
    said = [f'{variable}=~"${variable}"' for variable in chosen]
    for label, value in labels.items():
        operator = next((one for one in ("=~", "!~", "!=") if value.startswith(one)), "")
        said.append(f'{label}{operator or "="}"{value[len(operator):]}"')
    return f"{name}{{{', '.join(said)}}}"


def kilowatt_hours(joules: str) -> str:
    return f"{joules} / 3.6e6"
