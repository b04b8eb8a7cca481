// Prints the broker's response to "plan".
#include "app/penstock/local/plan.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include <unistd.h>

#include "app/penstock/common/verbs.h"
#include "app/penstock/local/query_agent.h"
#include "base/core/strings.h"
#include "os/core/file.h"
#include "protocol/broker/protocol.h"

namespace penstock::app {

namespace {

using protocol::broker::Operation;
using protocol::broker::Request;

constexpr char kPlanExamples[] =
    R"(penstock plan new.yaml           # what this file would change on this node
penstock plan                    # the current configuration, if it waits for a restart or was rejected
penstock plan new.yaml -o json | jq '.resources[] | select(.holders != [])'
penstock plan --explain          # which GPUs a request for 1, 2, ... would get now, and their links)";

base::Result<std::string> RequestFor(const std::string& file, bool explain) {
  Request request{.operation = Operation::kPreview};
  request.preview.explain = explain;
  if (!file.empty()) {
    ASSIGN(request.preview.text, file == "-" ? os::ReadAll(STDIN_FILENO, "standard input",
                                                           protocol::broker::kMaxLineBytes)
                                             : ReadConfigText(file));
    request.preview.name = file == "-" ? "standard input" : file;
  }
  std::string line = protocol::broker::EncodeRequest(request);
  if (line.size() >= protocol::broker::kMaxLineBytes)
    return base::Error(base::Code::kResourceExhausted,
                       request.preview.name + " is too large: a request is limited to 64 KiB");
  return line;
}

base::Result<Shown> PreviewOf(const Common& common, const std::string& file, bool explain) {
  ASSIGN(const api::NodeConfig config, Resolve(common.settings));
  ASSIGN(const std::string request, RequestFor(file, explain));
  ASSIGN(std::string answer, QueryLine(config.paths.run_dir, request));
  if (common.json()) return Shown(answer);
  ASSIGN(const api::ConfigPreview preview, api::ParseConfigPreview(answer));
  return Shown(ShowPreview(preview, common.style()));
}

Cell EffectCell(api::Effect effect) {
  return {std::string(ToString(effect)),
          effect == api::Effect::kRestart ? Color::kYellow : Color::kNone};
}

std::string TextOf(const std::optional<std::string>& value) { return value ? *value : "-"; }

using Name = std::pair<std::string, std::string>;  // resource, allocator

std::string NumberOf(const api::PreviewedDevice& device) {
  if (!device.number.empty()) return Printable(device.number);
  return device.index < 0 ? "-" : std::to_string(device.index);
}

std::string ShowPreviewedDevices(const api::ConfigPreview& preview, const Style& style) {
  Table devices({"GPU", "MODEL", "RESOURCE", "ALLOCATOR", "FREE", "WHY NOT"});
  for (const auto& one : preview.devices)
    devices.Add({NumberOf(one), one.model, one.resource.empty() ? "-" : one.resource,
                 one.allocator.empty() ? "-" : one.allocator,
                 Cell(std::to_string(one.free) + " of " + std::to_string(one.slots),
                      one.free > 0 ? Color::kNone : Color::kYellow),
                 one.reason.empty() ? "-" : one.reason});
  return devices.empty() ? "" : devices.Render(style);
}

/// A single kind of link is shown once; several kinds with their pairs, or with the number of
/// pairs.
std::string LinksCell(const api::PreviewedChoice& choice) {
  constexpr std::size_t kMaxPairs = 6;
  if (choice.links.size() == 1)
    return choice.links[0].link + (choice.links[0].pairs.size() > 1 ? " each" : "");
  std::vector<std::string> kinds;
  for (const auto& kind : choice.links)
    kinds.push_back(kind.link + ": " +
                    (kind.pairs.size() > kMaxPairs ? std::to_string(kind.pairs.size()) + " pairs"
                                                   : base::Join(kind.pairs, " ")));
  return base::Join(kinds, "; ");
}

std::string WhyCell(const api::PreviewedChoice& choice) {
  std::vector<std::string> parts;
  if (!choice.links.empty()) parts.push_back(LinksCell(choice));
  if (!choice.reason.empty()) parts.push_back(choice.reason);
  if (!choice.exact && choice.reason.empty())
    parts.push_back("a good set; there are too many to compare all");
  return parts.empty() ? "-" : base::Join(parts, "; ");
}

std::string ShowChoices(const api::ConfigPreview& preview, const Style& style) {
  std::map<std::string, std::string> number_of;
  for (const auto& one : preview.devices) number_of[one.id] = NumberOf(one);
  std::vector<Name> names;  // in the order of the preview
  for (const auto& one : preview.choices)
    if (const Name name{one.resource, one.allocator};
        std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  std::string text;
  for (const Name& name : names) {
    Table choices({"REQUESTED", "GPUS", "SCORE", "SCORE LEFT", "WHY"});
    for (const auto& one : preview.choices) {
      if (Name{one.resource, one.allocator} != name) continue;
      std::vector<std::string> gpus;
      for (const std::string& id : one.devices) gpus.push_back(number_of[id]);
      const bool none = gpus.empty();
      choices.Add({std::to_string(one.size),
                   none ? Cell("none", Color::kYellow) : Cell(base::Join(gpus, ",")),
                   none ? "-" : std::to_string(one.within), none ? "-" : std::to_string(one.left),
                   WhyCell(one)});
    }
    text += "\n" +
            Paint("A request for " + Printable(name.first) + " now (allocator " +
                      Printable(name.second) + "):",
                  Color::kBold, style) +
            "\n" + choices.Render(style);
  }
  return text;
}

}  // namespace

std::string ShowPreview(const api::ConfigPreview& preview, const Style& style) {
  std::string text;
  if (preview.changes.empty() && preview.resources.empty() && preview.labels.empty())
    text += "Nothing would change.\n";
  Table keys({"KEY", "FROM", "TO", "EFFECT"});
  for (const auto& change : preview.changes)
    keys.Add({change.key, change.from, change.to, EffectCell(change.effect)});
  if (!keys.empty()) text += keys.Render(style);
  Table resources({"RESOURCE", "ALLOCATOR", "BEFORE", "AFTER", "EFFECT", "HELD BY"});
  for (const auto& one : preview.resources)
    resources.Add({one.resource, one.allocator, std::to_string(one.before),
                   std::to_string(one.after), EffectCell(one.effect),
                   one.holders.empty() ? "-" : base::Join(one.holders, "; ")});
  if (!resources.empty()) text += (text.empty() ? "" : "\n") + resources.Render(style);
  Table labels({"LABEL", "BEFORE", "AFTER", "EFFECT"});
  for (const auto& one : preview.labels)
    labels.Add({one.key, TextOf(one.before), TextOf(one.after), EffectCell(one.effect)});
  if (!labels.empty()) text += (text.empty() ? "" : "\n") + labels.Render(style);
  for (const std::string& one : preview.not_yet)
    text += Paint("not supported yet: ", Color::kYellow, style) + Printable(one) + "\n";
  for (const std::string& one : preview.remarks) text += "remark: " + Printable(one) + "\n";
  if (const std::string devices = ShowPreviewedDevices(preview, style); !devices.empty())
    text += "\n" + devices;
  return text + ShowChoices(preview, style);
}

Verb PlanVerb(const Common& common) {
  struct Given {
    std::string file;
    bool explain = false;
  };
  const auto given = std::make_shared<Given>();
  return {
      .name = "plan",
      .summary = "Show what another configuration would change",
      .examples = kPlanExamples,
      .exit_status =
          "0 shown, 1 the configuration has problems (all of them shown) or no agent responds",
      .options = {Argument("FILE", &given->file,
                           "a configuration; - for standard input [the current one]"),
                  Flag(
                      "--explain", &given->explain,
                      "also show which devices requests for one, two, ... would get now, and why")},
      .shares = AgentOptionNames(),
      .formats = command::PlainFormats(),
      .show = [given, &common] { return PreviewOf(common, given->file, given->explain); }};
}

}  // namespace penstock::app
