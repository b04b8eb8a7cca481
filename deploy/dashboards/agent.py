"""Penstock itself: resource usage, freshness of its values, and problems."""
from common import NODE, RATE, SOME, family
from panels import BAD_ABOVE_ZERO, GREEN, RED, YELLOW, dashboard, lines, number, over_time, states, table


def of(name: str, **labels: str) -> str:
    return family(name, "node", **labels)


def of_agents(name: str) -> str:
    """Prometheus' own metrics about its scrape targets, for Penstock's targets only."""
    return f"{of(name)} and on (job, instance) {of('penstock_build_info')}"


def grown(name: str, by: str, **labels: str) -> str:
    return f"sum by ({by}) (increase({of(name, **labels)}{RATE}))"


AGE = f"time() - {of('accelerator_sample_timestamp_seconds')}"

DASHBOARD = dashboard(
    "agent", "Agents", "The agents: memory and processor time, freshness of values, configuration, usage records, requests to the API server.", [NODE],
    [("Now", [
        number("Agents", "none", f"count({of('penstock_build_info')})"),
        number("Memory, largest agent", "bytes", f"max(sum by (node) ({of('penstock_process_resident_memory_bytes')}))",
               description="Resident memory of all processes of the agent; shared pages are counted for each process."),
        number("Processor, busiest agent", "percentunit", f"max(sum by (node) (rate({of('penstock_process_cpu_seconds_total')}{RATE})))"),
        number("Oldest value", "s", f"max({AGE})", thresholds=[(None, GREEN), (30, YELLOW), (60, RED)],
               description="Time since a GPU last returned measurements."),
        number("Rejected configurations", "none", f"count({of('penstock_config_last_reload_successful')} == 0) or vector(0)",
               thresholds=BAD_ABOVE_ZERO),
        number("Holders unknown", "none", f"count({of('penstock_attribution_up')} == 0) or vector(0)", thresholds=SOME),
        table("Versions", ("Agents", "none", f"count by (version) ({of('penstock_build_info')})"), size=(8, 6)),
        table("Drivers", ("Usable on", "none", f"sum by (vendor, version) ({of('penstock_driver_present')})"), size=(8, 6)),
        table("Leases", ("Leases", "none", f"sum by (node, door, state) ({of('penstock_leases')})"), size=(8, 6)),
    ]), ("Resource usage", [
        lines("Resident memory", "bytes", over_time(f"sum by (node, process) ({of('penstock_process_resident_memory_bytes')})", "{{node}} {{process}}"),
              stacked=True),
        lines("Processor", "percentunit",
              over_time(f"sum by (node, process) (rate({of('penstock_process_cpu_seconds_total')}{RATE}))", "{{node}} {{process}}"),
              stacked=True, description="1 is one core."),
        lines("Time to render a page", "s", over_time(of("penstock_page_duration_seconds"), "{{node}}")),
        lines("Scrape duration, as measured by Prometheus", "s", over_time(of_agents("scrape_duration_seconds"), "{{node}}")),
        lines("Series per page", "none", over_time(of_agents("scrape_samples_scraped"), "{{node}}")),
        lines("Time to query all GPUs", "s", over_time(of("penstock_collection_round_duration_seconds"), "{{node}} {{vendor}}"),
              over_time(f"max by (node) ({of('accelerator_collection_duration_seconds')})", "{{node}} slowest GPU")),
        lines("HTTP responses", "reqps", over_time(f"sum by (node, status) (rate({of('penstock_http_answers_total')}{RATE}))", "{{node}} {{status}}"),
              stacked=True),
        lines("Connections", "none", over_time(of("penstock_http_connections"), "{{node}}"),
              over_time(grown("penstock_http_connections_cut_total", "node"), "{{node}} cut"),
              over_time(grown("penstock_http_connections_refused_total", "node"), "{{node}} refused")),
    ]), ("Collecting", [
        lines("Age of values", "s", over_time(f"max by (node) ({AGE})", "{{node}}")),
        lines("Failed collections of GPUs", "none", over_time(grown("accelerator_collection_failures_total", "node"), "{{node}}"), stacked=True),
        lines("Rejected values", "none", over_time(grown("accelerator_values_rejected_total", "node, quantity, reason"), "{{node}} {{quantity}} {{reason}}"),
              description="Implausible values from the driver."),
        states("Holders known", f"min by (node, door) ({of('penstock_attribution_up')})", "{{node}} {{door}}", {0: ("no", RED), 1: ("yes", GREEN)},
               size=(12, 8)),
        table("Values not supported by drivers", ("GPUs", "none", f"sum by (node, quantity) ({of('accelerator_unsupported')})"), size=(12, 8)),
        lines("MPS servers up", "none", over_time(of("penstock_sharing_server_up"), "{{node}} {{set}}")),
    ]), ("Configuration, records, API server", [
        table("Certificates of metrics pages", ("Valid for", "s", f"max by (node, instance) ({of('penstock_web_certificate_end_timestamp_seconds')}) - time()"),
              size=(12, 8), description="For pages served over TLS."),
        lines("Configurations", "none", over_time(f"sum by (node, result) ({of('penstock_config_reloads_total')})", "{{node}} {{result}}")),
        lines("Usage records", "none", over_time(f"sum by (node, result) ({of('penstock_usage_records_total')})", "{{node}} {{result}}"),
              over_time(of("penstock_usage_records_pending"), "{{node}} waiting")),
        lines("Failed writes of usage records", "none", over_time(of("penstock_usage_write_failures_total"), "{{node}}")),
        lines("Requests queued for GPUs", "none", over_time(of("penstock_queue_length"), "{{node}}"), stacked=True),
        lines("Requests to the API server", "reqps", over_time(f"sum by (node, kind) (rate({of('penstock_api_requests_total')}{RATE}))", "{{node}} {{kind}}"),
              description="Agents in a cluster. An idle agent only renews watches."),
        lines("Failed requests to the API server", "none", over_time(of("penstock_api_failures_total"), "{{node}}"), description="Agents in a cluster."),
    ])])
