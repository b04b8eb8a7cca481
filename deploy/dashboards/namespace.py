"""Who holds what and how it is used, by namespace, pod and user; the basis for billing, and for reclaiming GPUs."""
from common import NODE, RATE, SOME, family, kilowatt_hours
from panels import BLUE, choice, dashboard, dial, lines, number, over_time, table

NAMESPACE = choice("namespace", "Namespace", 'label_values(accelerator_held{node=~"$node", kind="pod"}, namespace)')


def of(name: str, **labels: str) -> str:
    return family(name, "node", "namespace", kind="pod", **labels)


def local(name: str) -> str:
    """Devices held with `penstock run`."""
    return family(name, "node", kind="run")


def grown(selector: str, by: str) -> str:
    return f"sum by ({by}) (increase({selector}[$__range]))"


def columns(select, by: str) -> list[tuple[str, str, str]]:
    """Columns for billing, with one row per namespace or user."""
    busy, held = (grown(select(f"accelerator_holder_{what}_seconds_total"), by) for what in ("busy", "measured"))
    return [("Hours held", "none", f"{held} / 3600"), ("Busy share", "percentunit", f"{busy} / {held}"),
            ("Energy", "kwatth", kilowatt_hours(grown(select("accelerator_holder_energy_joules_total"), by))),
            ("Processor hours", "none", f"{grown(select('accelerator_holder_cpu_seconds_total'), by)} / 3600")]


WHO = "namespace, pod, container, node, index"

DASHBOARD = dashboard(
    "namespace", "Namespaces", "Devices held and used by the pods of each namespace and by users; idle devices. `penstock usage` computes the same sums from records, "
    "exact to the second and over a longer time than Prometheus keeps.", [NODE, NAMESPACE],
    [("Now", [
        number("Slots held", "none", f"count({of('accelerator_held')})"),
        number("Namespaces", "none", f"count(count by (namespace) ({of('accelerator_held')}))"),
        dial("Busy, of held slots", "percentunit", f"avg({of('accelerator_holder_utilization_ratio')})", 0, 1, [(None, BLUE)]),
        number("Held and idle", "none", f"sum({of('accelerator_holder_idle')})", thresholds=SOME,
               description="Held, but not used for the time set by `usage.idleAfter` (default: 30 min)."),
        number("Memory in use", "bytes", f"sum({of('accelerator_holder_memory_used_bytes')})"),
        number("Held with penstock run", "none", f"count({local('accelerator_held')})"),
        table("Held and idle", ("Unused for", "s", f"(time() - max by ({WHO}) ({of('accelerator_holder_last_busy_timestamp_seconds')})) "
                                f"and (max by ({WHO}) ({of('accelerator_holder_idle')}) == 1)"), size=(12, 8), sort="Unused for"),
        table("Holders",
              ("Since", "dateTimeFromNow", 
               f"1000 * max by ({WHO}) ({of('accelerator_holder_start_timestamp_seconds')} unless {of('accelerator_holder_end_timestamp_seconds')})"),
              ("Utilization", "percentunit", f"max by ({WHO}) ({of('accelerator_holder_utilization_ratio')})"),
              ("Memory", "bytes", f"max by ({WHO}) ({of('accelerator_holder_memory_used_bytes')})"), size=(12, 8)),
    ]), ("Over time", [
        lines("Slots held", "none", over_time(f"count by (namespace) ({of('accelerator_held')})", "{{namespace}}"), stacked=True),
        lines("GPUs busy", "none", over_time(f"sum by (namespace) ({of('accelerator_holder_utilization_ratio')})", "{{namespace}}"), stacked=True,
              description="Sum of utilization: 1 is one GPU that is always busy."),
        lines("Power", "watt", over_time(f"sum by (namespace) (rate({of('accelerator_holder_energy_joules_total')}{RATE}))", "{{namespace}}"), stacked=True,
              description="Each holder's part of the power of its GPU."),
        lines("Memory", "bytes", over_time(f"sum by (namespace) ({of('accelerator_holder_memory_used_bytes')})", "{{namespace}}"), stacked=True),
    ]), ("Within the selected time range", [
        table("Namespaces", *columns(of, "namespace"), size=(12, 8), sort="Hours held"),
        table("Users of penstock run", *columns(local, "user"), size=(12, 8), sort="Hours held"),
    ])])
