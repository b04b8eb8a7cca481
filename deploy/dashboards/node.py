"""One node: its GPUs beside its processors, memory, disks and networks. The machine's metrics come from node_exporter, matched by the node's name."""
from common import FILL, GPU, HEAT, ONE_NODE, RATE, family
from panels import BLUE, GREEN, RED, choice, dashboard, dial, lines, number, over_time, states, table

MACHINE = choice("instance", "node_exporter", r'label_values(node_uname_info{nodename=~"($node)([.].*)?"}, instance)', several=False)


def of(name: str, **labels: str) -> str:
    return family(name, "node", **labels)


def machine(name: str, **labels: str) -> str:
    return family(name, "instance", **labels)


IDLE = f"avg(rate({machine('node_cpu_seconds_total', mode='idle')}{RATE}))"
MEMORY_LEFT = f"{machine('node_memory_MemAvailable_bytes')} / {machine('node_memory_MemTotal_bytes')}"
ROOT_LEFT = f"{machine('node_filesystem_avail_bytes', mountpoint='/')} / {machine('node_filesystem_size_bytes', mountpoint='/')}"
GPU_BUSY = f"avg({of('accelerator_utilization_ratio')})"
ONES = {"device": "!~lo|veth.*|cali.*|cni.*|docker.*"}  # without loopback and container interfaces

DASHBOARD = dashboard(
    "node", "Node", "A node's GPUs and the rest of the machine: whether they wait for processors, disks or networks.", [ONE_NODE, MACHINE],
    [("Now", [
        number("GPUs", "none", f"count({of('accelerator_info')})", size=(3, 4)),
        number("Usable", "none", f"sum({of('accelerator_healthy')})", size=(3, 4), thresholds=[(None, RED), (1, GREEN)]),
        dial("GPUs busy", "percentunit", GPU_BUSY, 0, 1, [(None, BLUE)], size=(3, 4)),
        dial("Processors busy", "percentunit", f"1 - {IDLE}", 0, 1, FILL, size=(3, 4)),
        dial("Memory of GPUs in use", "percentunit", f"sum({of('accelerator_memory_used_bytes')}) / sum({of('accelerator_memory_bytes')})", 0, 1, FILL,
             size=(3, 4)),
        dial("Memory in use", "percentunit", f"1 - {MEMORY_LEFT}", 0, 1, FILL, size=(3, 4)),
        number("Power of GPUs", "watt", f"sum({of('accelerator_power_watts')})", size=(3, 4)),
        number("Hottest GPU", "celsius", f"max({of('accelerator_temperature_celsius')})", size=(3, 4), thresholds=HEAT),
        table("GPUs",
              ("Usable", "none", f"max by (index, device, model) ({of('accelerator_healthy')})"),
              ("Free shares", "none", f"sum by (index, device, model) ({of('accelerator_shares', state='free')})"),
              ("Utilization", "percentunit", f"max by (index, device, model) ({of('accelerator_utilization_ratio')})"),
              ("Memory used", "bytes", f"max by (index, device, model) ({of('accelerator_memory_used_bytes')})"),
              ("Power", "watt", f"max by (index, device, model) ({of('accelerator_power_watts')})"),
              ("Temperature", "celsius", f"max by (index, device, model) ({of('accelerator_temperature_celsius')})"), size=(14, 9)),
        table("Holders", ("Slots", "none", f"count by (index, kind, namespace, pod, container, user) ({of('accelerator_held')})"), size=(10, 9)),
    ]), ("GPUs", [
        lines("Utilization", "percentunit", over_time(of("accelerator_utilization_ratio"), GPU), high=1),
        lines("Memory in use", "bytes", over_time(of("accelerator_memory_used_bytes"), GPU)),
        lines("Power", "watt", over_time(of("accelerator_power_watts"), GPU), stacked=True),
        lines("Temperature", "celsius", over_time(of("accelerator_temperature_celsius"), GPU)),
        lines("PCIe, sent and received", "Bps", over_time(of("accelerator_pcie_transmit_bytes_per_second"), f"{GPU} sent"),
              over_time(of("accelerator_pcie_receive_bytes_per_second"), f"{GPU} received")),
        states("Usable", f"max by (node, index) ({of('accelerator_healthy')})", GPU, {0: ("no", RED), 1: ("yes", GREEN)}, size=(12, 8)),
    ]), ("The machine", [
        lines("GPUs and processors busy", "percentunit", over_time(GPU_BUSY, "GPUs"), over_time(f"1 - {IDLE}", "processors"), high=1,
              description="Idle GPUs while the processors are busy indicate that data is prepared too slowly."),
        lines("Memory", "bytes", over_time(f"{machine('node_memory_MemTotal_bytes')} - {machine('node_memory_MemAvailable_bytes')}", "in use"),
              over_time(machine("node_memory_MemTotal_bytes"), "all")),
        lines("Processors by mode", "percentunit",
              over_time(f"avg by (mode) (rate({machine('node_cpu_seconds_total', mode='!=idle')}{RATE}))", "{{mode}}"), stacked=True, high=1),
        lines("Load", "none", over_time(machine("node_load1"), "1 min"), over_time(f"count({machine('node_cpu_seconds_total', mode='idle')})", "processors")),
        lines("Disks", "Bps", over_time(f"sum by (device) (rate({machine('node_disk_read_bytes_total')}{RATE}))", "{{device}} read"),
              over_time(f"sum by (device) (rate({machine('node_disk_written_bytes_total')}{RATE}))", "{{device}} written")),
        lines("Networks", "Bps", over_time(f"sum by (device) (rate({machine('node_network_transmit_bytes_total', **ONES)}{RATE}))", "{{device}} sent"),
              over_time(f"sum by (device) (rate({machine('node_network_receive_bytes_total', **ONES)}{RATE}))", "{{device}} received")),
        dial("Root filesystem in use", "percentunit", f"1 - {ROOT_LEFT}", 0, 1, FILL, size=(6, 6)),
        number("Uptime", "s", f"time() - {machine('node_boot_time_seconds')}", size=(6, 6)),
        table("Programs", ("There", "none", f"max by (version) ({of('penstock_build_info')})"), size=(6, 6)),
        table("Drivers", ("There", "none", f"max by (vendor, version) ({of('penstock_driver_present')})"), size=(6, 6)),
    ])])
