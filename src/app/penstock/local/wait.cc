// `penstock wait`: blocks until the agent, its devices or a value are as a script needs them.
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "api/node_state.h"
#include "app/command/output.h"
#include "app/penstock/common/verbs.h"
#include "app/penstock/local/query_agent.h"
#include "app/penstock/local/status.h"
#include "base/core/quantity.h"
#include "base/core/strings.h"

namespace penstock::app {

namespace {

using base::Code;
using base::Error;
using base::Result;
using Time = std::chrono::steady_clock;

constexpr base::Duration kPollInterval = std::chrono::milliseconds(200);

constexpr char kWaitExamples[] =
    R"(penstock wait                                         # until the agent has read its devices
penstock wait 0 1 --for healthy --timeout 5m          # until both devices are healthy
penstock wait 3 --for free                            # until device 3 has no holder
penstock wait --for condition=ConfigurationInForce
penstock wait --for jsonpath='{.status.devices[0].allocator}'=local
penstock up --detach && penstock wait --for healthy && ./run-tests)";

constexpr char kWaitDetails[] =
    R"(--for is one of: ready (the condition Ready), healthy, free (the named devices, or all of them),
condition=TYPE[=true|false], jsonpath='{EXPRESSION}'=VALUE over the report of `penstock status -o json`.
An agent that does not run yet is waited for, too.)";

struct WaitOptions {
  std::vector<std::string> devices;
  std::string wanted = "ready", timeout = "30s";
};

/// What has to hold: returns why it does not yet; empty: it does.
using Unmet = std::function<std::string(const api::Report&)>;

std::string UnmetCondition(const api::Report& report, const std::string& type, bool status) {
  for (const api::ConditionReport& condition : report.conditions)
    if (condition.type == type)
      return condition.status == status
                 ? ""
                 : "condition " + type + " is " + (condition.status ? "true" : "false") +
                       (condition.reason.empty() ? "" : " (" + condition.reason + ")");
  return "there is no condition " + type;
}

std::string UnmetDevices(const api::Report& report, bool healthy) {
  std::vector<std::string> unmet;
  for (const api::DeviceReport& device : report.devices) {
    const std::string number = NumberOf(device);
    const std::string name = "device " + (number.empty() ? device.id : number);
    if (healthy && device.health_state != "healthy")
      unmet.push_back(name + " is " + device.health_state);
    if (!healthy && !device.holders.empty()) unmet.push_back(name + " is held");
  }
  if (report.devices.empty()) return "there are no devices";
  return base::Join(unmet, ", ");
}

Result<Unmet> UnmetOf(const std::string& wanted) {
  if (wanted == "ready")
    return Unmet([](const api::Report& report) { return UnmetCondition(report, "Ready", true); });
  if (wanted == "healthy" || wanted == "free")
    return Unmet([healthy = wanted == "healthy"](const api::Report& report) {
      return UnmetDevices(report, healthy);
    });
  if (wanted.starts_with("condition=")) {
    const auto parts = base::Split(wanted, '=');
    const std::string status = parts.size() > 2 ? base::ToLower(parts[2]) : "true";
    if (parts.size() < 4 && !parts[1].empty() && (status == "true" || status == "false"))
      return Unmet([type = parts[1], status = status == "true"](const api::Report& report) {
        return UnmetCondition(report, type, status);
      });
  }
  if (wanted.starts_with("jsonpath=")) {
    const auto equals = wanted.rfind("}=");
    if (equals != std::string::npos) {
      const std::string path = wanted.substr(9, equals + 1 - 9), value = wanted.substr(equals + 2);
      TRY(command::CheckJsonPath(path));
      return Unmet([path, value](const api::Report& report) {
        const auto found = command::JsonPath(path, api::NodeDocument(report));
        if (!found.ok()) return found.error().message();
        return *found == value ? "" : path + " is \"" + *found + "\"";
      });
    }
  }
  return Error(Code::kInvalidArgument,
               "--for \"" + wanted +
                   "\": expected ready, healthy, free, condition=TYPE[=true|false] or "
                   "jsonpath='{EXPRESSION}'=VALUE");
}

Result<std::string> Unsatisfied(const std::string& run_dir, const WaitOptions& options,
                                const Unmet& unmet) {
  ASSIGN(api::Report report, QueryReport(run_dir));
  TRY(KeepDevices(options.devices, report));
  return unmet(report);
}

Result<base::Duration> TimeoutOf(const WaitOptions& options) {
  if (options.timeout == "0") return base::Duration(0);
  auto timeout = base::ParseDuration(options.timeout);
  if (!timeout.ok()) return timeout.error().Within("--timeout");
  return timeout;
}

Result<Shown> WaitForAll(const Common& common, const WaitOptions& options) {
  ASSIGN(const Unmet unmet, UnmetOf(options.wanted));
  ASSIGN(const base::Duration timeout, TimeoutOf(options));
  ASSIGN(const api::NodeConfig config, Resolve(common.settings));
  const auto deadline = Time::now() + timeout;
  for (;;) {
    const auto why = Unsatisfied(config.paths.run_dir, options, unmet);
    const bool comes = why.ok() || why.error().code() == Code::kUnavailable ||
                       why.error().code() == Code::kNotFound;
    if (!comes) return why.error();
    if (why.ok() && why->empty()) return Shown(options.wanted + ": yes");
    if (Time::now() >= deadline)
      return Shown(options.wanted + ": not within " + options.timeout + ": " +
                       (why.ok() ? *why : why.error().message()),
                   command::kNo);
    std::this_thread::sleep_for(std::min<base::Duration>(
        kPollInterval, std::max<base::Duration>(deadline - Time::now(), base::Duration(0))));
  }
}

}  // namespace

Verb WaitVerb(const Common& common) {
  const auto options = std::make_shared<WaitOptions>();
  return {.name = "wait",
          .summary =
              "Wait until the agent is ready, devices are healthy or free, or a value is as "
              "given",
          .examples = kWaitExamples,
          .details = kWaitDetails,
          .exit_status = "0 it is so, 1 failed, 2 usage error, 3 it was not so in time",
          .options = {Argument("DEVICE", &options->devices, "indices, UUIDs or PCI addresses [all]")
                          .Separated(),
                      Value("--for", &options->wanted, "WHAT", "what to wait for [ready]"),
                      Value("--timeout", &options->timeout, "DURATION",
                            "how long to wait; 0 checks once [30s]")},
          .shares = AgentOptionNames(),
          .check = [options]() -> base::Status {
            if (const auto unmet = UnmetOf(options->wanted); !unmet.ok()) return unmet.error();
            const auto timeout = TimeoutOf(*options);
            return timeout.ok() ? base::Status() : timeout.error();
          },
          .show = [options, &common] { return WaitForAll(common, *options); }};
}

}  // namespace penstock::app
