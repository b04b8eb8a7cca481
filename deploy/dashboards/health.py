"""Current, past and likely faults, for the people who maintain the hardware."""
from common import GPU, HEALTHY, NODE, RATE, SOME, family
from panels import BAD_ABOVE_ZERO, GREEN, RED, dashboard, dial, lines, number, over_time, states, table


def of(name: str, **labels: str) -> str:
    return family(name, "node", **labels)


def grown(name: str, by: str, within: str = RATE, **labels: str) -> str:
    return f"sum by ({by}) (increase({of(name, **labels)}{within}))"


IN_WORDS = "node, device, kind, code, severity"

DASHBOARD = dashboard(
    "health", "Health", "Which GPUs are unusable and why, reported errors, and wear that precedes failures. docs/health.md lists the classes of errors.",
    [NODE],
    [("Now", [
        dial("Usable share", "percentunit", f"avg({of('accelerator_healthy')})", 0, 1, HEALTHY),
        number("Unusable", "none", f"count({of('accelerator_healthy')} == 0) or vector(0)", thresholds=BAD_ABOVE_ZERO),
        number("On probation", "none", f"count({of('accelerator_probation_end_timestamp_seconds')}) or vector(0)", thresholds=SOME),
        number("Remapping failed", "none", f"sum({of('accelerator_row_remap_failed')})", thresholds=BAD_ABOVE_ZERO),
        number("Remapping pending", "none", f"sum({of('accelerator_row_remap_pending')})", thresholds=SOME),
        number("Thermally throttled", "none", f"count(max by (node, index) ({of('accelerator_clocks_limited', reason='=~.*_thermal')}) == 1) or vector(0)",
               thresholds=BAD_ABOVE_ZERO),
        states("Usable", f"max by (node, index) ({of('accelerator_healthy')})", GPU, {0: ("no", RED), 1: ("yes", GREEN)}, size=(24, 9)),
        table("Unusable", ("There", "none", f"max by (node, index, model, device, state) ({of('accelerator_health_state', state='!=healthy')} == 1)"),
              size=(12, 8)),
        table("On probation", ("Used again in", "s", f"max by (node, index, model, device) ({of('accelerator_probation_end_timestamp_seconds')} - time())"),
              size=(12, 8), description="If no further fault occurs until then."),
    ]), ("Reported errors", [
        table("Latest errors", ("When", "dateTimeFromNow", f"1000 * max by ({IN_WORDS}) ({of('accelerator_evidence_last_timestamp_seconds')})"),
              ("Count since the agent started", "none", f"sum by ({IN_WORDS}) ({of('accelerator_evidence_total')})"), size=(12, 8), sort="When"),
        lines("Errors", "none", over_time(f"sum by (node, kind, code) ({of('accelerator_evidence_total')})", "{{node}} {{kind}} {{code}}"),
              description="Since the agent started."),
        lines("Changes of health", "none", over_time(grown("accelerator_health_transitions_total", "node, state"), "{{node}} to {{state}}")),
        lines("Relapses", "none", over_time(of("accelerator_relapses"), GPU), description="Number of failures soon after a recovery."),
    ]), ("Memory", [
        lines("ECC errors", "none", over_time(f"sum by (node, index, error) ({of('accelerator_ecc_errors_total')})", f"{GPU} {{{{error}}}}"),
              description="Since the driver was loaded."),
        lines("Remapped rows", "none", over_time(f"sum by (node, index, cause) ({of('accelerator_remapped_rows_total')})", f"{GPU} {{{{cause}}}}"),
              description="Ampere and newer."),
        lines("Banks by remaining spare rows", "none",
              over_time(f"sum by (node, spare) ({of('accelerator_row_remap_banks', spare='!=max')})", "{{node}} {{spare}}"),
              description="A bank with none fails with the next uncorrectable error."),
        lines("Retired pages", "none", over_time(f"sum by (node, index, cause) ({of('accelerator_retired_pages_total')})", f"{GPU} {{{{cause}}}}"),
              description="Before Ampere."),
    ]), ("Links and heat", [
        lines("PCIe replays", "none", over_time(grown("accelerator_pcie_replays_total", "node, index"), GPU)),
        lines("NVLink errors", "none", over_time(grown("accelerator_fabric_errors_total", "node, index, error"), f"{GPU} {{{{error}}}}"),
              description="GPUs with NVLink."),
        lines("Time throttled by heat", "percentunit", over_time(
            f"sum by (node, index) (rate({of('accelerator_clocks_limited_seconds_total', reason='thermal')}{RATE}))", GPU), high=1),
        lines("Time throttled by power", "percentunit", over_time(
            f"sum by (node, index) (rate({of('accelerator_clocks_limited_seconds_total', reason='power')}{RATE}))", GPU), high=1),
    ])])
