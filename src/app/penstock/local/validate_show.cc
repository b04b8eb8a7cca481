#include "app/penstock/local/validate_show.h"

#include "app/penstock/local/show.h"

namespace penstock::app {
namespace {

Color ColorOfStep(const std::string& state) {
  if (state == "passed") return Color::kGreen;
  if (state == "failed") return Color::kRed;
  return state == "waiting" ? Color::kYellow : Color::kDim;
}

/// What a step is about.
const char* MeaningOf(const std::string& step) {
  if (step == "driver") return "the driver of each vendor with devices is loaded and usable";
  if (step == "device-nodes") return "the device files exist, with the numbers of the driver";
  if (step == "fabric") return "devices that a fabric links have joined it";
  if (step == "compute") return "a short program computes on the devices that are free";
  if (step == "toolkit") return "the container engine can give containers the devices";
  if (step == "plugin") return "the kubelet reads the list of devices";
  if (step == "devices") return "at least one device can be used";
  return "a step of a newer agent";
}

}  // namespace

std::string ShowSteps(const std::vector<api::ValidationStep>& steps, const Style& style,
                      base::WallTime now) {
  Table table({"STEP", "STATE", "SINCE", "REASON"});
  for (const api::ValidationStep& step : steps)
    table.Add(
        {step.name, {step.state, ColorOfStep(step.state)}, AgeOf(step.since, now), step.reason});
  return table.Render(style);
}

std::string ExplainSteps(const std::vector<api::ValidationStep>& steps, const Style& style,
                         base::WallTime now) {
  std::string text;
  for (const api::ValidationStep& step : steps) {
    text += (text.empty() ? "" : "\n") + Printable(step.name) + ": " +
            Paint(Printable(step.state), ColorOfStep(step.state), style) + ", since " +
            AgeOf(step.since, now) + "\n  checks:  " + MeaningOf(step.name) +
            "\n  found:   " + Printable(step.reason) + "\n";
    if (!step.remedy.empty()) text += "  to do:   " + Printable(step.remedy) + "\n";
  }
  return text;
}

}  // namespace penstock::app
