// `penstock door`: which door each device is at, and moving devices to another one. Asks the agent, decides nothing.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "app/penstock/ask.h"
#include "app/penstock/show.h"
#include "app/penstock/verbs.h"
#include "base/core/quantity.h"
#include "base/core/strings.h"
#include "edge/broker/client.h"
#include "edge/broker/protocol.h"

namespace penstock::app {
namespace {

using base::Code;
using base::Error;
using edge::broker::DeviceMove;
using Json = nlohmann::json;

// What the agent takes at most, beside the wait for holders, until something changes that it tells: the kubelet's acknowledgement.
constexpr base::Duration kPatience = std::chrono::minutes(2);

constexpr char kFooter[] = R"(Examples:
  penstock door list                          # which door each device is at
  penstock door set 6 7 local                 # two GPUs for `penstock run` on this machine
  penstock door set 6,7 kubelet --wait 10m    # back to the pods, once those who hold them have ended
  penstock door set 3 none                    # to nobody: for maintenance
  penstock door set 3 default                 # to where the configuration has it
  penstock door set 6 local --dry-run

A device belongs to one door at a time: it is withdrawn, then nobody must hold it and the kubelet must have taken the shorter list,
then it is offered at the other door. Without --wait a device that is held is refused and nothing changes. A move goes on when this
program is interrupted, and outlives the agent; it counts more than the configuration until `default`.

Exit status: 0 done, 1 not done (the message says why).)";

struct DoorOptions {
  std::vector<std::string> words;
  std::string wait;
  bool dry_run = false;
};

base::Result<edge::broker::Request> ToRequest(const DoorOptions& options) {
  static const std::vector<std::string> kDoors = {"kubelet", "local", "none", "default"};
  edge::broker::Request request;
  request.operation = edge::broker::Operation::kDoor;
  request.door.dry_run = options.dry_run;
  request.door.devices = options.words;
  request.door.door = options.words.back();
  request.door.devices.pop_back();
  if (std::find(kDoors.begin(), kDoors.end(), request.door.door) == kDoors.end()) {
    const auto near = base::Nearest(request.door.door, kDoors);
    return Error(Code::kInvalidArgument, "\"" + request.door.door + "\" is no door: the last word is kubelet, local, none or default" +
                                             (near ? "; did you mean \"" + *near + "\"?" : ""));
  }
  if (request.door.devices.empty())
    return Error(Code::kInvalidArgument,
                 "which devices? Say their UUIDs or indices before the door: penstock door set 6 7 " + request.door.door);
  if (options.wait.empty()) return request;
  auto wait = base::ParseDuration(options.wait);
  if (!wait.ok()) return wait.error().Within("--wait");
  request.door.wait = *wait;
  return request;
}

std::string NameOf(const DeviceMove& move) { return move.index < 0 ? move.device : "device " + std::to_string(move.index); }

/// "device 3: kubelet -> local: waiting: held by ml/train-0"
std::string Told(const DeviceMove& move) {
  return NameOf(move) + ": " + (move.state == "unchanged" ? move.to : move.from + " -> " + move.to) + ": " +
         (move.state == "would-move" ? "would move" : move.state) + (move.reason.empty() ? "" : ": " + move.reason);
}

base::Result<std::vector<DeviceMove>> Ask(const std::string& run_dir, const edge::broker::Request& request, std::string& answer) {
  ASSIGN(auto client, edge::broker::Client::Connect(run_dir));
  TRY(client.SendLine(EncodeRequest(request)));
  for (;;) {
    ASSIGN(answer, client.ReadLine(kPatience + request.door.wait.value_or(base::Duration::zero())));
    ASSIGN(const auto said, edge::broker::DecodeDoorAnswer(answer));
    if (said.moved) return *said.moved;
    if (said.moving) std::cerr << Printable(Told(*said.moving)) << std::endl;
  }
}

base::Status Set(const Common& common, const DoorOptions& options) {
  ASSIGN(const auto request, ToRequest(options));
  ASSIGN(const auto config, Resolve(common.settings));
  std::string answer;
  ASSIGN(const auto moves, Ask(config.paths.run_dir, request, answer));
  if (common.json) {
    std::cout << answer << "\n";
    return {};
  }
  for (const DeviceMove& move : moves) std::cout << Printable(Told(move)) << "\n";
  return {};
}

/// The part of the report that says it, for programs.
std::string ListJson(const std::string& report) {
  const Json all = Json::parse(report);
  Json devices = Json::array();
  for (const Json& device : all.at("devices")) {
    Json one = Json::object();
    for (const char* key : {"id", "index", "model", "door", "resource", "sharing", "shares", "free", "isolation", "withheld"})
      if (device.contains(key)) one[key] = device[key];
    devices.push_back(std::move(one));
  }
  return Json{{"devices", std::move(devices)}, {"doors", all.at("doors")}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

base::Status List(const Common& common) {
  ASSIGN(const auto config, Resolve(common.settings));
  ASSIGN(const std::string answer, AskLine(config.paths.run_dir, R"({"op":"status"})"));
  ASSIGN(const api::Report report, api::ParseReport(answer));
  std::cout << (common.json ? ListJson(answer) + "\n" : ShowDoors(report, StyleOf(STDOUT_FILENO)));
  return {};
}

int ToExitCode(const base::Status& status) {
  if (!status.ok()) std::cerr << "penstock door: " << status.error().message() << "\n";
  return status.ok() && std::cout.flush() ? 0 : 1;
}

}  // namespace

void AddDoor(CLI::App& app, const Common& common, int& exit_code) {
  CLI::App* door = app.add_subcommand("door", "Show which door each device is at, or move devices to another one")->fallthrough();
  door->footer(kFooter);
  door->require_subcommand(0, 1);
  door->add_subcommand("list", "Shows which door each device is at")->fallthrough();
  CLI::App* set = door->add_subcommand("set", "Moves devices to a door: set DEVICE... kubelet|local|none|default")->fallthrough();
  const auto options = std::make_shared<DoorOptions>();
  set->add_option("DEVICE... DOOR", options->words,
                  "UUIDs or indices, then kubelet, local, none, or default for what the configuration says")
      ->required()
      ->delimiter(',')
      ->type_name("");
  set->add_option("--wait", options->wait, "How long to wait for those who hold them, e.g. 10m [not at all]")->type_name("TIME");
  set->add_flag("--dry-run", options->dry_run, "Only say what would be done");
  door->callback([set, options, &common, &exit_code] { exit_code = ToExitCode(set->parsed() ? Set(common, *options) : List(common)); });
}

}  // namespace penstock::app
