// The broker's answer to "plan", printed.
#include "app/penstock/plan.h"

#include <filesystem>
#include <iostream>

#include <unistd.h>

#include "app/penstock/ask.h"
#include "base/strings.h"
#include "edge/broker/protocol.h"
#include "os/file.h"

namespace penstock::app {

namespace {

using edge::broker::Operation;
using edge::broker::Request;

base::Result<std::string> RequestFor(const std::string& file) {
  Request request{.operation = Operation::kPlan};
  if (!file.empty()) {
    ASSIGN(request.plan.text,
           file == "-" ? os::ReadAll(STDIN_FILENO, "standard input", edge::broker::kMostLineBytes) : ReadConfigText(file));
    request.plan.name = file == "-" ? "standard input" : file;
  }
  std::string line = edge::broker::EncodeRequest(request);
  if (line.size() >= edge::broker::kMostLineBytes)
    return base::Error(base::Code::kResourceExhausted, request.plan.name + " is too large to ask about: a request has at most 64 KiB");
  return line;
}

base::Result<std::string> PlanText(const Common& common, const std::string& file) {
  ASSIGN(const api::NodeConfig config, Resolve(common.settings));
  ASSIGN(const std::string request, RequestFor(file));
  ASSIGN(std::string answer, AskLine(config.paths.run_dir, request));
  if (common.json) return answer + "\n";
  ASSIGN(const api::Plan plan, api::ParsePlan(answer));
  return ShowPlan(plan, StyleOf(STDOUT_FILENO));
}

Cell EffectCell(api::Effect effect) {
  return {std::string(ToString(effect)), effect == api::Effect::kRestart ? Color::kYellow : Color::kNone};
}

std::string Shown(const std::optional<std::string>& value) { return value ? *value : "-"; }

}  // namespace

std::string ShowPlan(const api::Plan& plan, const Style& style) {
  std::string text;
  if (plan.changes.empty() && plan.resources.empty() && plan.labels.empty()) text += "Nothing would change.\n";
  Table keys({"KEY", "FROM", "TO", "EFFECT"});
  for (const auto& change : plan.changes) keys.Add({change.key, change.from, change.to, EffectCell(change.effect)});
  if (!keys.empty()) text += keys.Render(style);
  Table resources({"RESOURCE", "DOOR", "BEFORE", "AFTER", "EFFECT", "HELD BY"});
  for (const auto& one : plan.resources)
    resources.Add({one.resource, one.door, std::to_string(one.before), std::to_string(one.after), EffectCell(one.effect),
                   one.holders.empty() ? "-" : base::Join(one.holders, "; ")});
  if (!resources.empty()) text += (text.empty() ? "" : "\n") + resources.Render(style);
  Table labels({"LABEL", "BEFORE", "AFTER", "EFFECT"});
  for (const auto& one : plan.labels) labels.Add({one.key, Shown(one.before), Shown(one.after), EffectCell(one.effect)});
  if (!labels.empty()) text += (text.empty() ? "" : "\n") + labels.Render(style);
  for (const std::string& one : plan.not_yet) text += Paint("not yet: ", Color::kYellow, style) + Printable(one) + "\n";
  for (const std::string& one : plan.remarks) text += "remark: " + Printable(one) + "\n";
  return text;
}

int Plan(const Common& common, const std::string& file) {
  const auto text = PlanText(common, file);
  if (!text.ok()) {
    std::cerr << "penstock plan: " << text.error().message() << "\n";
    return 1;
  }
  std::cout << *text;
  return std::cout.flush() ? 0 : 1;
}

}  // namespace penstock::app
