// Adds the metrics about Penstock itself.
#include <map>
#include <string>
#include <utility>

#include "node/metrics/families.h"

namespace penstock::node::metrics {
namespace {

void AddDrivers(const inventory::Snapshot& inventory, Exposition& page) {
  page.Family("penstock_driver_present");
  for (const inventory::VendorEntry& vendor : inventory.vendors) {
    LabelText labels;
    labels.Add("vendor", vendor.vendor).Add("version", vendor.driver ? vendor.driver->version : "");
    page.Add(labels.text(), {}, vendor.driver != nullptr);
  }
}

void AddValidation(const std::vector<api::ValidationStep>& steps, Exposition& page) {
  page.Family("penstock_validation_state");
  for (const api::ValidationStep& step : steps)
    for (const std::string_view state : {"passed", "failed", "waiting", "skipped"})
      page.Add(LabelText().Add("step", step.name).Add("state", state).text(), {},
               step.state == state);
}

void AddLeases(const ledger::Snapshot& ledger, Exposition& page) {
  std::map<std::pair<std::string_view, std::string_view>, std::uint64_t> counts;
  for (const api::Allocator& allocator : api::Allocators())
    for (const std::string_view state : {"handed", "held"}) counts[{allocator.name, state}] = 0;
  for (const ledger::Lease& lease : ledger.leases)
    ++counts[{lease.allocator, lease.state == ledger::LeaseState::kHeld ? "held" : "handed"}];
  page.Family("penstock_leases");
  for (const auto& [key, count] : counts)
    page.Add(LabelText().Add("door", key.first).Add("state", key.second).text(), count);
}

void AddReloads(const ConfigReloads& reloads, Exposition& page) {
  page.Family("penstock_config_reloads_total");
  page.Add(R"(result="applied")", reloads.applied);
  page.Add(R"(result="refused")", reloads.refused);
  page.Family("penstock_config_last_reload_successful");
  page.Add({}, {}, reloads.last_successful);
  page.Family("penstock_config_remarks");
  page.Add({}, {}, static_cast<double>(reloads.remarks));
  if (reloads.last_applied == base::WallTime{}) return;
  page.Family("penstock_config_applied_timestamp_seconds");
  page.Add({}, UnixTime(reloads.last_applied));
}

void AddApiRequests(const ApiRequests& requests, Exposition& page) {
  page.Family("penstock_api_requests_total");
  page.Add(R"(kind="read")", requests.reads);
  page.Add(R"(kind="write")", requests.writes);
  page.Add(R"(kind="watch")", requests.streams);
  page.Family("penstock_api_retries_total");
  page.Add({}, requests.retries);
  page.Family("penstock_api_failures_total");
  page.Add({}, requests.failures);
}

void AddHttp(const HttpCounts& counts, Exposition& page) {
  page.Family("penstock_http_answers_total");
  for (const auto& [status, count] : counts.answers)
    page.Add(LabelText().Add("status", std::to_string(status)).text(), count);
  page.Family("penstock_http_connections");
  page.Add({}, std::uint64_t{counts.open});
  page.Family("penstock_http_connections_cut_total");
  page.Add({}, counts.cut);
  page.Family("penstock_http_connections_refused_total");
  page.Add({}, counts.refused);
}

void AddWebConfig(const WebConfigCounts& config, Exposition& page) {
  page.Family("penstock_web_config_reloads_total");
  page.Add(R"(result="applied")", config.applied);
  page.Add(R"(result="refused")", config.refused);
  page.Family("penstock_web_config_last_reload_successful");
  page.Add({}, {}, config.last_successful);
  page.Family("penstock_web_certificate_end_timestamp_seconds");
  if (config.certificate_ends != base::WallTime{}) page.Add({}, UnixTime(config.certificate_ends));
}

}  // namespace

void AddAgent(const inventory::Snapshot& inventory, const ledger::Snapshot& ledger,
              const PageInputs& inputs, Exposition& page) {
  AddDrivers(inventory, page);
  AddValidation(inputs.validation, page);
  AddLeases(ledger, page);
  page.Family("penstock_queue_length");
  page.Add({}, std::uint64_t{inputs.queue_length});
  AddReloads(inputs.reloads, page);
  if (inputs.api_requests) AddApiRequests(*inputs.api_requests, page);
  page.Family("penstock_process_resident_memory_bytes");
  for (const ProcessCost& cost : inputs.processes)
    page.Add(LabelText().Add("process", cost.process).text(), cost.resident_bytes);
  page.Family("penstock_process_cpu_seconds_total");
  for (const ProcessCost& cost : inputs.processes)
    page.Add(LabelText().Add("process", cost.process).text(), cost.cpu_seconds);
  if (inputs.http) AddHttp(*inputs.http, page);
  if (inputs.web_config) AddWebConfig(*inputs.web_config, page);
  page.Family("penstock_page_duration_seconds");
  if (inputs.page_took > base::Duration::zero()) page.Add({}, base::Seconds(inputs.page_took));
  page.Family("penstock_build_info");
  page.Add(LabelText().Add("version", inputs.version).text(), {}, true);
}

}  // namespace penstock::node::metrics
