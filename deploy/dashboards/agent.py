"""Penstock itself: what it costs, how old its values are, and whether it can do its work."""
from common import NODE, RATE, SOME, family
from panels import BAD_ABOVE_ZERO, GREEN, RED, YELLOW, dashboard, lines, number, over_time, states, table


def of(name: str, **labels: str) -> str:
    return family(name, "node", **labels)


def of_agents(name: str) -> str:
    """Of what Prometheus says of its targets, that of ours."""
    return f"{of(name)} and on (job, instance) {of('penstock_build_info')}"


def grown(name: str, by: str, **labels: str) -> str:
    return f"sum by ({by}) (increase({of(name, **labels)}{RATE}))"


AGE = f"time() - {of('accelerator_sample_timestamp_seconds')}"

DASHBOARD = dashboard(
    "agent", "Agents", "The agents: memory and processor time, how fresh their values are, configuration, records of usage, requests to the API server.", [NODE],
    [("Now", [
        number("Agents", "none", f"count({of('penstock_build_info')})"),
        number("Memory of one, most", "bytes", f"max(sum by (node) ({of('penstock_process_resident_memory_bytes')}))",
               description="Resident memory of all its processes; pages that they share are counted in each."),
        number("Processor of one, most", "percentunit", f"max(sum by (node) (rate({of('penstock_process_cpu_seconds_total')}{RATE})))"),
        number("Oldest value", "s", f"max({AGE})", thresholds=[(None, GREEN), (30, YELLOW), (60, RED)],
               description="Since a GPU last answered what it measures."),
        number("Refused configurations", "none", f"count({of('penstock_config_last_reload_successful')} == 0) or vector(0)",
               thresholds=BAD_ABOVE_ZERO),
        number("Holders not known", "none", f"count({of('penstock_attribution_up')} == 0) or vector(0)", thresholds=SOME),
        table("Versions", ("Agents", "none", f"count by (version) ({of('penstock_build_info')})"), size=(8, 6)),
        table("Drivers", ("Usable on", "none", f"sum by (vendor, version) ({of('penstock_driver_present')})"), size=(8, 6)),
        table("Leases", ("Leases", "none", f"sum by (node, door, state) ({of('penstock_leases')})"), size=(8, 6)),
    ]), ("Cost", [
        lines("Resident memory", "bytes", over_time(f"sum by (node, process) ({of('penstock_process_resident_memory_bytes')})", "{{node}} {{process}}"),
              stacked=True),
        lines("Processor", "percentunit",
              over_time(f"sum by (node, process) (rate({of('penstock_process_cpu_seconds_total')}{RATE}))", "{{node}} {{process}}"),
              stacked=True, description="1 is one core."),
        lines("Time for a page", "s", over_time(of("penstock_page_duration_seconds"), "{{node}}")),
        lines("A scrape, as Prometheus sees it", "s", over_time(of_agents("scrape_duration_seconds"), "{{node}}")),
        lines("Series of a page", "none", over_time(of_agents("scrape_samples_scraped"), "{{node}}")),
        lines("Time to ask all GPUs", "s", over_time(of("penstock_collection_round_duration_seconds"), "{{node}} {{vendor}}"),
              over_time(f"max by (node) ({of('accelerator_collection_duration_seconds')})", "{{node}} slowest GPU")),
        lines("Answers over HTTP", "reqps", over_time(f"sum by (node, status) (rate({of('penstock_http_answers_total')}{RATE}))", "{{node}} {{status}}"),
              stacked=True),
        lines("Connections", "none", over_time(of("penstock_http_connections"), "{{node}}"),
              over_time(grown("penstock_http_connections_cut_total", "node"), "{{node}} cut"),
              over_time(grown("penstock_http_connections_refused_total", "node"), "{{node}} without room")),
    ]), ("Collecting", [
        lines("Age of values", "s", over_time(f"max by (node) ({AGE})", "{{node}}")),
        lines("GPUs that did not answer", "none", over_time(grown("accelerator_collection_failures_total", "node"), "{{node}}"), stacked=True),
        lines("Values kept out", "none", over_time(grown("accelerator_values_rejected_total", "node, quantity, reason"), "{{node}} {{quantity}} {{reason}}"),
              description="Nonsense from the driver."),
        states("Holders known", f"min by (node, door) ({of('penstock_attribution_up')})", "{{node}} {{door}}", {0: ("no", RED), 1: ("yes", GREEN)},
               size=(12, 8)),
        table("What drivers cannot tell", ("GPUs", "none", f"sum by (node, quantity) ({of('accelerator_unsupported')})"), size=(12, 8)),
        lines("MPS servers up", "none", over_time(of("penstock_sharing_server_up"), "{{node}} {{set}}")),
    ]), ("Configuration, records, API server", [
        table("Certificates of pages", ("Valid for", "s", f"max by (node, instance) ({of('penstock_web_certificate_end_timestamp_seconds')}) - time()"),
              size=(12, 8), description="Pages that are served over TLS."),
        lines("Configurations", "none", over_time(f"sum by (node, result) ({of('penstock_config_reloads_total')})", "{{node}} {{result}}")),
        lines("Records of usage", "none", over_time(f"sum by (node, result) ({of('penstock_usage_records_total')})", "{{node}} {{result}}"),
              over_time(of("penstock_usage_records_pending"), "{{node}} waiting")),
        lines("Failed attempts to write records", "none", over_time(of("penstock_usage_write_failures_total"), "{{node}}")),
        lines("Requests that wait for GPUs", "none", over_time(of("penstock_queue_length"), "{{node}}"), stacked=True),
        lines("Requests to the API server", "reqps", over_time(f"sum by (node, kind) (rate({of('penstock_api_requests_total')}{RATE}))", "{{node}} {{kind}}"),
              description="Agents in a cluster. At rest only watches are renewed."),
        lines("Failed requests to the API server", "none", over_time(of("penstock_api_failures_total"), "{{node}}"), description="Agents in a cluster."),
    ])])
