"""One GPU, or several compared: all values that the driver reports."""
from common import FILL, GPU, HEAT, NODE, RATE, family
from panels import BLUE, GREEN, RED, YELLOW, choice, dashboard, dial, lines, number, over_time, states, table

DEVICE = choice("device", "GPU", 'label_values(accelerator_info{node=~"$node"}, device)')
PROCESS = "{{namespace}} {{pod}} {{user}} {{pid}} {{command}}"  # the last two if the pages require credentials
ENGINES = "!~(decoder|encoder|jpeg|optical_flow).*"  # the panel of engines shows these already


def of(name: str, **labels: str) -> str:
    return family(name, "device", **labels)


def rate(name: str, **labels: str) -> str:
    return f"rate({of(name, **labels)}{RATE})"


DASHBOARD = dashboard(
    "gpu", "GPU", "All values that the driver reports about a GPU. Activity requires Hopper or newer; docs/monitoring.md lists what else older GPUs lack.",
    [NODE, DEVICE],
    [("", [
        table("Properties", ("There", "none", f"max by (node, index, device, model, vendor, architecture, pci, numa, driver) ({of('accelerator_info')})"),
              size=(24, 5)),
        dial("Utilization", "percentunit", f"avg({of('accelerator_utilization_ratio')})", 0, 1, [(None, BLUE)]),
        dial("Memory in use", "percentunit", f"sum({of('accelerator_memory_used_bytes')}) / sum({of('accelerator_memory_bytes')})", 0, 1, FILL),
        number("Power", "watt", f"sum({of('accelerator_power_watts')})"),
        number("Temperature", "celsius", f"max({of('accelerator_temperature_celsius')})", thresholds=HEAT),
        number("Usable", "none", f"sum({of('accelerator_healthy')})", thresholds=[(None, RED), (1, GREEN)]),
        number("Shares held", "none", f"sum({of('accelerator_shares', state='held')})"),
    ]), ("Holders and processes", [
        table("Holders", ("Slots", "none", f"count by (node, index, kind, namespace, pod, container, user) ({of('accelerator_held')})"), size=(12, 8)),
        lines("Memory of each holder", "bytes", over_time(of("accelerator_holder_memory_used_bytes"), f"{GPU} {{{{namespace}}}} {{{{pod}}}} {{{{user}}}}"),
              stacked=True),
        lines("Memory of each process", "bytes", over_time(of("accelerator_process_memory_used_bytes"), f"{GPU} {PROCESS}"), stacked=True),
        lines("Utilization of each process", "percentunit",
              over_time(of("accelerator_process_utilization_ratio"), f"{GPU} {PROCESS}"), stacked=True, high=1),
    ]), ("Use", [
        lines("Utilization", "percentunit", over_time(of("accelerator_utilization_ratio"), GPU),
              over_time(of("accelerator_memory_copy_utilization_ratio"), f"{GPU} memory interface"), high=1),
        lines("Engines", "percentunit", over_time(of("accelerator_engine_utilization_ratio"), f"{GPU} {{{{engine}}}}"), high=1),
        lines("Activity by unit", "percentunit", over_time(of("accelerator_activity_ratio", part=ENGINES), f"{GPU} {{{{part}}}}"), high=1,
              description="Hopper and newer. More precise than utilization: how many of its processors were active, and with which work."),
        lines("Occupancy", "percentunit", over_time(of("accelerator_occupancy_ratio"), GPU), high=1, description="Hopper and newer."),
        lines("Memory", "bytes", over_time(of("accelerator_memory_used_bytes"), f"{GPU} used"), over_time(of("accelerator_memory_bytes"), f"{GPU} all")),
        lines("Clocks", "hertz", over_time(of("accelerator_clock_hertz"), f"{GPU} {{{{clock}}}}"),
              over_time(of("accelerator_clock_max_hertz", clock="sm"), f"{GPU} sm, maximum")),
    ]), ("Power and heat", [
        lines("Power", "watt", over_time(of("accelerator_power_watts"), GPU), over_time(of("accelerator_power_limit_watts", limit="enforced"), f"{GPU} limit")),
        lines("Power, derived from energy", "watt", over_time(rate("accelerator_energy_joules_total"), GPU),
              description="Exact over any period, whereas power readings miss changes between them. Volta and newer."),
        lines("Temperature", "celsius", over_time(of("accelerator_temperature_celsius"), GPU),
              over_time(of("accelerator_memory_temperature_celsius"), f"{GPU} memory")),
        lines("Time with limited clocks", "percentunit", over_time(rate("accelerator_clocks_limited_seconds_total"), f"{GPU} {{{{reason}}}}"), high=1,
              description="Part of the time in which something kept the clocks down."),
        states("Limited now", f"max by (node, index, reason) ({of('accelerator_clocks_limited')})", f"{GPU} {{{{reason}}}}",
               {0: ("no", GREEN), 1: ("yes", YELLOW)}),
    ]), ("Links", [
        lines("PCIe", "Bps", over_time(of("accelerator_pcie_transmit_bytes_per_second"), f"{GPU} sent"),
              over_time(of("accelerator_pcie_receive_bytes_per_second"), f"{GPU} received")),
        lines("NVLink", "Bps", over_time(rate("accelerator_fabric_transmit_bytes_total"), f"{GPU} sent"),
              over_time(rate("accelerator_fabric_receive_bytes_total"), f"{GPU} received"), description="GPUs with NVLink."),
        lines("PCIe link", "none", over_time(of("accelerator_pcie_link_generation"), f"{GPU} generation"),
              over_time(of("accelerator_pcie_link_width"), f"{GPU} lanes"),
              description="Fewer lanes than supported indicate a fault. The generation drops when idle."),
        lines("NVLinks up", "none", over_time(f"sum by (node, index) ({of('accelerator_fabric_link_up')})", GPU), description="GPUs with NVLink."),
    ])])
