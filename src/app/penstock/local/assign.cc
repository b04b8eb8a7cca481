// `penstock assign`: lists the allocator of each device and moves devices to another allocator,
// through the agent.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "app/penstock/common/verbs.h"
#include "app/penstock/local/query_agent.h"
#include "app/penstock/local/show.h"
#include "base/core/quantity.h"
#include "base/core/strings.h"
#include "protocol/broker/client.h"
#include "protocol/broker/protocol.h"

namespace penstock::app {
namespace {

using base::Code;
using base::Error;
using protocol::broker::AssignProgress;
using Json = nlohmann::json;

// The longest time without a change that the agent reports, apart from the wait for holders: it
// waits for the kubelet's acknowledgement.
constexpr base::Duration kPatience = std::chrono::minutes(2);

constexpr char kFooter[] = R"(Examples:
  penstock assign                          # who allocates each device
  penstock assign 6 7 local                # two GPUs for `penstock run` on this machine
  penstock assign 6,7 kubelet --wait 10m   # back to pods, as soon as their holders release them
  penstock assign 3 none                   # to no allocator: for maintenance
  penstock assign 3 default                # as the configuration says
  penstock assign 6 local --dry-run

A device belongs to one allocator at a time: the kubelet, which gives it to pods; local, which gives it to commands started by
`penstock run`; or none. A move first withdraws the device, then waits until the device has no holder and the kubelet has
acknowledged the shorter list, and then offers it through the other allocator. Without --wait, a device that is held is refused
and nothing changes. A move continues when this program is interrupted and when the agent restarts. It takes precedence over the
configuration until `default`.

Exit status: 0 done, 1 not done (the message says why).)";

struct AllocatorOptions {
  std::vector<std::string> words;
  std::string wait;
  bool dry_run = false;
};

base::Result<protocol::broker::Request> ToRequest(const AllocatorOptions& options) {
  static const std::vector<std::string> kAllocators = {"kubelet", "local", "none", "default"};
  protocol::broker::Request request;
  request.operation = protocol::broker::Operation::kAssign;
  request.assign.dry_run = options.dry_run;
  request.assign.devices = options.words;
  request.assign.allocator = options.words.back();
  request.assign.devices.pop_back();
  if (std::find(kAllocators.begin(), kAllocators.end(), request.assign.allocator) ==
      kAllocators.end()) {
    const auto near = base::Nearest(request.assign.allocator, kAllocators);
    return Error(
        Code::kInvalidArgument,
        "\"" + request.assign.allocator +
            "\" is not an allocator: the last argument must be kubelet, local, none or default" +
            (near ? "; did you mean \"" + *near + "\"?" : ""));
  }
  if (request.assign.devices.empty())
    return Error(
        Code::kInvalidArgument,
        "no device given; name UUIDs or indices before the allocator: penstock assign 6 7 " +
            request.assign.allocator);
  if (options.wait.empty()) return request;
  auto wait = base::ParseDuration(options.wait);
  if (!wait.ok()) return wait.error().Within("--wait");
  request.assign.wait = *wait;
  return request;
}

std::string NameOf(const AssignProgress& move) {
  return move.index < 0 ? move.device : "device " + std::to_string(move.index);
}

/// Formats a move: "device 3: kubelet -> local: waiting: held by ml/train-0".
std::string Reported(const AssignProgress& move) {
  return NameOf(move) + ": " +
         (move.state == "unchanged" ? move.to : move.from + " -> " + move.to) + ": " +
         (move.state == "would-move" ? "would move" : move.state) +
         (move.reason.empty() ? "" : ": " + move.reason);
}

base::Result<std::vector<AssignProgress>> Query(const std::string& run_dir,
                                                const protocol::broker::Request& request,
                                                std::string& answer) {
  ASSIGN(auto client, protocol::broker::Client::Connect(run_dir));
  TRY(client.SendLine(EncodeRequest(request)));
  for (;;) {
    ASSIGN(answer,
           client.ReadLine(kPatience + request.assign.wait.value_or(base::Duration::zero())));
    ASSIGN(const auto decoded, protocol::broker::DecodeAssignAnswer(answer));
    if (decoded.moved) return *decoded.moved;
    if (decoded.moving) std::cerr << Printable(Reported(*decoded.moving)) << std::endl;
  }
}

base::Status Set(const Common& common, const AllocatorOptions& options) {
  ASSIGN(const auto request, ToRequest(options));
  ASSIGN(const auto config, Resolve(common.settings));
  std::string answer;
  ASSIGN(const auto moves, Query(config.paths.run_dir, request, answer));
  if (common.json) {
    std::cout << answer << "\n";
    return {};
  }
  for (const AssignProgress& move : moves) std::cout << Printable(Reported(move)) << "\n";
  return {};
}

/// The part of the report with the allocators, as JSON.
std::string ListJson(const std::string& report) {
  const Json all = Json::parse(report);
  Json devices = Json::array();
  for (const Json& device : all.at("devices")) {
    Json one = Json::object();
    for (const char* key : {"id", "index", "model", "allocator", "door", "resource", "sharing",
                            "shares", "free", "isolation", "withheld"})
      if (device.contains(key)) one[key] = device[key];
    devices.push_back(std::move(one));
  }
  const Json& allocators = all.at(all.contains("allocators") ? "allocators" : "doors");
  return Json{{"devices", std::move(devices)}, {"allocators", allocators}, {"doors", allocators}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

base::Status List(const Common& common) {
  ASSIGN(const auto config, Resolve(common.settings));
  ASSIGN(const std::string answer, QueryLine(config.paths.run_dir, R"({"op":"status"})"));
  ASSIGN(const api::Report report, api::ParseReport(answer));
  std::cout << (common.json ? ListJson(answer) + "\n"
                            : ShowAllocators(report, StyleOf(STDOUT_FILENO)));
  return {};
}

int ToExitCode(const base::Status& status) {
  if (!status.ok()) std::cerr << "penstock assign: " << status.error().message() << "\n";
  return status.ok() && std::cout.flush() ? 0 : 1;
}

void AddMoveOptions(CLI::App& verb, AllocatorOptions& options) {
  verb.add_option("--wait", options.wait,
                  "How long to wait until the holders release the devices, e.g. 10m [do not wait]")
      ->type_name("TIME");
  verb.add_flag("--dry-run", options.dry_run, "Only show what would be done");
}

CLI::Option* AddMoveArguments(CLI::App& verb, AllocatorOptions& options) {
  return verb
      .add_option("DEVICE... ALLOCATOR", options.words,
                  "UUIDs or indices, then kubelet, local, none, or default for what the "
                  "configuration says")
      ->delimiter(',')
      ->type_name("");
}

/// `penstock door`, as 0.1.0 has it. Not shown in help, because it belongs to no group.
void AddDeprecatedVerb(CLI::App& app, const Common& common, int& exit_code) {
  CLI::App* door =
      app.add_subcommand("door", "Deprecated: use penstock assign")->fallthrough()->group("");
  door->require_subcommand(0, 1);
  door->add_subcommand("list", "Deprecated: use penstock assign")->fallthrough();
  CLI::App* set = door->add_subcommand("set", "Deprecated: use penstock assign")->fallthrough();
  const auto options = std::make_shared<AllocatorOptions>();
  AddMoveArguments(*set, *options)->required();
  AddMoveOptions(*set, *options);
  door->callback([set, options, &common, &exit_code] {
    std::cerr << "penstock door is deprecated: use penstock assign"
              << (set->parsed() ? " DEVICE... ALLOCATOR" : "") << "\n";
    exit_code = ToExitCode(set->parsed() ? Set(common, *options) : List(common));
  });
}

}  // namespace

void AddAssign(CLI::App& app, const Common& common, int& exit_code) {
  CLI::App* assign =
      app.add_subcommand("assign",
                         "Show who allocates each device, or assign devices to another allocator")
          ->fallthrough();
  assign->footer(kFooter);
  const auto options = std::make_shared<AllocatorOptions>();
  AddMoveArguments(*assign, *options);
  AddMoveOptions(*assign, *options);
  assign->callback([options, &common, &exit_code] {
    exit_code = ToExitCode(options->words.empty() ? List(common) : Set(common, *options));
  });
  AddDeprecatedVerb(app, common, exit_code);
}

}  // namespace penstock::app
