// `penstock assign`: lists the allocator of each device and moves devices to another allocator,
// through the agent.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/allocators.h"
#include "app/penstock/common/verbs.h"
#include "app/penstock/local/query_agent.h"
#include "app/penstock/local/show.h"
#include "base/core/json_text.h"
#include "base/core/quantity.h"
#include "base/core/strings.h"
#include "protocol/broker/client.h"
#include "protocol/broker/protocol.h"

namespace penstock::app {
namespace {

using base::Code;
using base::Error;
using base::Result;
using protocol::broker::AssignProgress;
using Json = nlohmann::json;

// The longest time without a change that the agent reports, apart from the wait for holders: for
// two minutes it waits for the kubelet's acknowledgement, and then says so.
constexpr base::Duration kAssignPatience = std::chrono::minutes(3);

constexpr char kAssignExamples[] =
    R"(penstock assign                          # who allocates each device
penstock assign 6 7 local                # two GPUs for `penstock run` on this machine
penstock assign 6,7 --to local           # the same
penstock assign 6,7 kubelet --wait 10m   # back to pods, as soon as their holders release them
penstock assign 3 none                   # to no allocator: for maintenance
penstock assign 3 default                # as the configuration says
penstock assign 6 local --dry-run)";

constexpr char kAssignDetails[] =
    R"(A device belongs to one allocator at a time: the kubelet, which gives it to pods; local, which gives
it to commands started by `penstock run`; or none. A move first withdraws the device, then waits
until the device has no holder and the kubelet has acknowledged the shorter list, and then offers it
through the other allocator. Without --wait, a device that is held is refused and nothing changes.
Where the kubelet does not acknowledge the list within two minutes, the device stays where it was. A
move continues when this program is interrupted and when the agent restarts. It takes precedence
over the configuration until `default`.)";

/// "kubelet, local, none or default".
std::string AllWords() {
  std::vector<std::string> words = api::AllocatorWords({api::kConfiguredAllocator});
  const std::string last = words.back();
  words.pop_back();
  return base::Join(words, ", ") + " or " + last;
}

struct AllocatorOptions {
  std::vector<std::string> words;  ///< the devices, and the allocator if `to` is empty
  std::string to;
  std::string wait;
  bool dry_run = false;
};

Result<protocol::broker::Request> ToRequest(const AllocatorOptions& options) {
  protocol::broker::Request request;
  request.operation = protocol::broker::Operation::kAssign;
  request.assign.dry_run = options.dry_run;
  request.assign.devices = options.words;
  request.assign.allocator = options.to;
  if (options.to.empty()) {
    request.assign.allocator = options.words.back();
    request.assign.devices.pop_back();
  }
  const std::vector<std::string> words = api::AllocatorWords({api::kConfiguredAllocator});
  if (std::ranges::find(words, request.assign.allocator) == words.end()) {
    const auto near = base::Nearest(request.assign.allocator, words);
    return Error(Code::kInvalidArgument, "\"" + request.assign.allocator +
                                             "\" is not an allocator: the last argument, or --to, "
                                             "must be " +
                                             AllWords() +
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
  if (!move.number.empty()) return "device " + move.number;
  return move.index < 0 ? move.device : "device " + std::to_string(move.index);
}

/// Formats a move: "device 3: kubelet -> local: waiting: held by ml/train-0".
std::string Reported(const AssignProgress& move) {
  return NameOf(move) + ": " +
         (move.state == "unchanged" ? move.to : move.from + " -> " + move.to) + ": " +
         (move.state == "would-move" ? "would move" : move.state) +
         (move.reason.empty() ? "" : ": " + move.reason);
}

Result<std::vector<AssignProgress>> Query(const std::string& run_dir,
                                          const protocol::broker::Request& request,
                                          std::string& answer) {
  ASSIGN(auto client, protocol::broker::Client::Connect(run_dir));
  TRY(client.SendLine(EncodeRequest(request)));
  for (;;) {
    ASSIGN(answer,
           client.ReadLine(kAssignPatience + request.assign.wait.value_or(base::Duration::zero())));
    ASSIGN(const auto decoded, protocol::broker::DecodeAssignAnswer(answer));
    if (decoded.moved) return *decoded.moved;
    if (decoded.moving) std::cerr << Printable(Reported(*decoded.moving)) << std::endl;
  }
}

Result<Shown> Set(const Common& common, const AllocatorOptions& options) {
  ASSIGN(const auto request, ToRequest(options));
  ASSIGN(const auto config, Resolve(common.settings));
  std::string answer;
  ASSIGN(const auto moves, Query(config.paths.run_dir, request, answer));
  if (common.json()) return Shown(answer);
  std::string text;
  for (const AssignProgress& move : moves) text += Printable(Reported(move)) + "\n";
  return Shown(text);
}

/// The part of the report with the allocators, as JSON.
std::string ListJson(const std::string& report) {
  const auto all = base::ParseJson<Json>(report);
  Json devices = Json::array();
  for (const Json& device : all.at("devices")) {
    Json one = Json::object();
    for (const char* key : {"id", "index", "number", "model", "profile", "allocator", "door",
                            "resource", "sharing", "shares", "free", "isolation", "withheld"})
      if (device.contains(key)) one[key] = device[key];
    devices.push_back(std::move(one));
  }
  const Json& allocators = all.at(all.contains("allocators") ? "allocators" : "doors");
  return base::JsonText(
      Json{{"devices", std::move(devices)}, {"allocators", allocators}, {"doors", allocators}});
}

Result<Shown> ListAllocators(const Common& common) {
  ASSIGN(const auto config, Resolve(common.settings));
  ASSIGN(const std::string answer, QueryLine(config.paths.run_dir, R"({"op":"status"})"));
  ASSIGN(const api::Report report, api::ParseReport(answer));
  return Shown(common.json() ? ListJson(answer) : ShowAllocators(report, common.style()));
}

Result<Shown> ListOrSet(const Common& common, const AllocatorOptions& options) {
  return options.words.empty() ? ListAllocators(common) : Set(common, options);
}

base::Status Check(const AllocatorOptions& options) {
  if (options.words.empty() && options.to.empty()) return {};
  const auto request = ToRequest(options);
  return request.ok() ? base::Status() : request.error();
}

std::vector<command::Option> Options(AllocatorOptions& options) {
  return {Argument("DEVICE", &options.words,
                   "UUIDs or indices; without --to, the allocator follows the devices: kubelet, "
                   "local, none, or default for what the configuration says")
              .Separated(),
          Value("--to", &options.to, "ALLOCATOR", "the allocator: " + AllWords()),
          Value("--wait", &options.wait, "TIME",
                "how long to wait until the holders release the devices, e.g. 10m [do not wait]"),
          Flag("--dry-run", &options.dry_run, "only show what would be done")};
}

}  // namespace

Verb AssignVerb(const Common& common) {
  const auto options = std::make_shared<AllocatorOptions>();
  return {.name = "assign",
          .summary = "Show who allocates each device, or assign devices to another allocator",
          .usage = "[DEVICE... ALLOCATOR]",
          .examples = kAssignExamples,
          .details = kAssignDetails,
          .exit_status = "0 done, 1 not done (the message says why), 2 usage error",
          .options = Options(*options),
          .words = api::AllocatorWords({api::kConfiguredAllocator}),
          .shares = AgentOptionNames(),
          .formats = command::TableFormats(),
          .names = {"device", ".devices[*].id"},
          .check = [options] { return Check(*options); },
          .show = [options, &common] { return ListOrSet(common, *options); }};
}

/// `penstock door`, as 0.1.0 has it.
Verb DoorVerb(const Common& common) {
  const auto options = std::make_shared<AllocatorOptions>();
  const auto show = [options, &common] {
    std::cerr << "penstock door is deprecated: use penstock assign"
              << (options->words.empty() ? "" : " DEVICE... ALLOCATOR") << "\n";
    return ListOrSet(common, *options);
  };
  const auto formats = command::TableFormats();
  const command::NamePath names{"device", ".devices[*].id"};
  std::vector<command::Option> set_options = Options(*options);
  set_options.front().required = true;
  return {.name = "door",
          .summary = "Deprecated: use penstock assign",
          .verbs = {{.name = "list", .formats = formats, .names = names, .show = show},
                    {.name = "set",
                     .options = std::move(set_options),
                     .formats = formats,
                     .check = [options] { return Check(*options); },
                     .show = show}},
          .formats = formats,
          .names = names,
          .show = show,
          .hidden = true};
}

}  // namespace penstock::app
