"""All nodes: how many GPUs exist, are usable, allocated and busy."""
from common import FILL, GPU, HEALTHY, HEAT, NODE, family, kilowatt_hours
from panels import BAD_ABOVE_ZERO, BLUE, bars, choice, dashboard, dial, lines, number, over_time, table

MODEL = choice("model", "Model", 'label_values(accelerator_info{node=~"$node"}, model)')


def of(name: str, **labels: str) -> str:
    return family(name, "node", "model", **labels)


def by(label: str) -> list[tuple[str, str, str]]:
    """Columns of a table with one row per node or model."""
    return [("GPUs", "none", f"count by ({label}) ({of('accelerator_info')})"),
            ("Usable", "none", f"sum by ({label}) ({of('accelerator_healthy')})"),
            ("Free shares", "none", f"sum by ({label}) ({of('accelerator_shares', state='free')})"),
            ("Utilization", "percentunit", f"avg by ({label}) ({of('accelerator_utilization_ratio')})"),
            ("Power", "watt", f"sum by ({label}) ({of('accelerator_power_watts')})"),
            ("Hottest", "celsius", f"max by ({label}) ({of('accelerator_temperature_celsius')})"),
            ("Energy", "kwatth", kilowatt_hours(f"sum by ({label}) (increase({of('accelerator_energy_joules_total')}[$__range]))"))]


USED, MEMORY = of("accelerator_memory_used_bytes"), of("accelerator_memory_bytes")

DASHBOARD = dashboard(
    "fleet", "Fleet", "Accelerators of all nodes: number, health, holders and utilization.", [NODE, MODEL],
    [("Now", [
        number("Nodes", "none", f"count(count by (node) ({of('accelerator_info')}))", size=(3, 4)),
        number("GPUs", "none", f"count({of('accelerator_info')})", size=(3, 4)),
        dial("Usable share", "percentunit", f"avg({of('accelerator_healthy')})", 0, 1, HEALTHY, size=(3, 4)),
        dial("Allocated", "percentunit", f"sum({of('accelerator_shares', state='held')}) / sum({of('accelerator_shares')})", 0, 1, [(None, BLUE)],
             size=(3, 4), description="Share of all offered slots; a GPU that is not shared counts as one."),
        dial("Busy", "percentunit", f"avg({of('accelerator_utilization_ratio')})", 0, 1, [(None, BLUE)], size=(3, 4),
             description="Mean utilization of all GPUs."),
        number("Held and idle", "none", f"count({family('accelerator_holder_idle', 'node')} == 1) or vector(0)", size=(3, 4),
               thresholds=BAD_ABOVE_ZERO, description="Allocated, but not used for the time set by `usage.idleAfter`. The namespace dashboard and "
               "`penstock usage --idle` list them."),
        number("Power", "watt", f"sum({of('accelerator_power_watts')})", size=(3, 4)),
        number("Hottest", "celsius", f"max({of('accelerator_temperature_celsius')})", size=(3, 4), thresholds=HEAT),
    ]), ("Over time", [
        lines("Utilization", "percentunit", over_time(f"avg by (node) ({of('accelerator_utilization_ratio')})", "{{node}}"), high=1),
        lines("Shares", "none", over_time(f"sum by (state) ({of('accelerator_shares')})", "{{state}}"), stacked=True,
              description="held, free, or unusable: unhealthy, used by outside processes, or still held under a previous configuration."),
        lines("Memory in use", "percentunit", over_time(f"sum by (node) ({USED}) / sum by (node) ({MEMORY})", "{{node}}"), high=1),
        lines("Power", "watt", over_time(f"sum by (node) ({of('accelerator_power_watts')})", "{{node}}"), stacked=True),
        lines("Hottest GPU", "celsius", over_time(f"max by (node) ({of('accelerator_temperature_celsius')})", "{{node}}")),
        lines("Unusable", "none", over_time(f"count by (node) ({of('accelerator_info')}) - sum by (node) ({of('accelerator_healthy')})", "{{node}}"),
              stacked=True),
    ]), ("By node and model", [
        table("Nodes", *by("node"), size=(12, 9), sort="GPUs"),
        table("Models", *by("model"), size=(12, 9), sort="GPUs"),
        bars("Utilization of each GPU", "percentunit", f"sort_desc({of('accelerator_utilization_ratio')})", GPU, high=1),
        bars("Memory of each GPU", "percentunit", f"sort_desc({USED} / {MEMORY})", GPU, high=1, thresholds=FILL),
    ])])
