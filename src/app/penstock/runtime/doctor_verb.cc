// Formats the findings and defines the command line of `penstock runtime doctor`.
#include "app/penstock/runtime/doctor_verb.h"

#include <algorithm>
#include <memory>

#include <nlohmann/json.hpp>

#include "app/penstock/cdi/cdi_files.h"
#include "app/penstock/cdi/cdi_verbs.h"
#include "app/penstock/common/table.h"
#include "app/penstock/common/verbs.h"
#include "base/core/json_text.h"

namespace penstock::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr char kExamples[] =
    R"(penstock runtime doctor
penstock runtime doctor --prove                   # and start a container that opens the devices
penstock runtime doctor --prove --device nvidia.com/gpu=0 --engine podman
penstock runtime doctor --prove --engine containerd --image registry.k8s.io/pause:3.10    # the kubelet's way, in a pod
penstock runtime doctor -o json | jq -r '.findings[] | select(.state == "bad") | .why')";

constexpr char kDetails[] =
    R"(Finds what makes devices disappear silently: specifications that engines skip, that conflict with each
other or are for a driver that is no longer loaded; engines that are too old, have CDI disabled or
read another folder. Changes nothing; what must be written is shown line by line.)";

std::string NameOf(analysis::FindingState verdict) {
  switch (verdict) {
    case analysis::FindingState::kOk: return "ok";
    case analysis::FindingState::kUnknown: return "unknown";
    case analysis::FindingState::kBad: return "bad";
  }
  return "";
}

Cell CellOf(analysis::FindingState verdict) {
  switch (verdict) {
    case analysis::FindingState::kOk: return {"ok", Color::kGreen};
    case analysis::FindingState::kUnknown: return {"unknown", Color::kYellow};
    case analysis::FindingState::kBad: return {"bad", Color::kRed};
  }
  return "";
}

/// Never cuts a finding's sentence, because it is the result that the user asked for.
std::string ShowTable(const std::vector<analysis::DoctorFinding>& findings, Style style) {
  style.width = 0;
  Table table({"STATE", "WHAT", "WHY"});
  for (const auto& finding : findings)
    table.Add({CellOf(finding.verdict), finding.about, finding.why});
  return table.Render(style);
}

std::string ShowRemedies(const std::vector<analysis::DoctorFinding>& findings, const Style& style) {
  std::string text;
  for (const auto& finding : findings) {
    if (finding.write.empty() && finding.run.empty()) continue;
    text += "\n" + Paint(Printable(finding.about + ": " + finding.why), Color::kBold, style) + "\n";
    if (!finding.write.empty()) text += "  write to " + Printable(finding.file) + ":\n";
    for (const std::string& line : finding.write) text += "    " + Printable(line) + "\n";
    if (!finding.run.empty()) text += finding.write.empty() ? "  run:\n" : "  then run:\n";
    for (const std::string& line : finding.run) text += "    " + Printable(line) + "\n";
  }
  return text;
}

bool IsBad(const analysis::DoctorFinding& finding) {
  return finding.verdict == analysis::FindingState::kBad;
}

Shown Doctor(const Common& common, const std::vector<std::string>& folders,
             const std::optional<Proof>& proof) {
  const analysis::DoctorFacts facts = Gather(folders);
  std::vector<analysis::DoctorFinding> findings = analysis::Judge(facts);
  if (proof) {
    const auto proved = Prove(*proof, facts);
    findings.insert(findings.end(), proved.begin(), proved.end());
  }
  const bool bad = std::any_of(findings.begin(), findings.end(), IsBad);
  return {common.json() ? FindingsJson(findings) : ShowFindings(findings, common.style()),
          bad ? command::kFailed : command::kDone};
}

}  // namespace

std::string ShowFindings(const std::vector<analysis::DoctorFinding>& findings, const Style& style) {
  return ShowTable(findings, style) + ShowRemedies(findings, style);
}

std::string FindingsJson(const std::vector<analysis::DoctorFinding>& findings) {
  Json list = Json::array();
  for (const auto& finding : findings)
    list.push_back({{"state", NameOf(finding.verdict)},
                    {"what", finding.about},
                    {"why", finding.why},
                    {"file", finding.file},
                    {"write", finding.write},
                    {"run", finding.run}});
  const bool bad = std::any_of(findings.begin(), findings.end(), IsBad);
  const Json tree = {{"well", !bad}, {"findings", list}};
  return base::JsonText(tree, 2) + "\n";
}

Verb RuntimeDoctorVerb(const Common& common) {
  struct Given {
    std::vector<std::string> folders = DefaultSpecFolders();
    bool prove = false;
    Proof proof;
  };
  const auto given = std::make_shared<Given>();
  return {
      .name = "doctor",
      .summary = "Find what makes devices disappear from containers, and what to write",
      .examples = kExamples,
      .details = kDetails,
      .exit_status = "0 no problems were found, 1 problems were found",
      .options = {SpecFolders(given->folders),
                  Flag("--prove", &given->prove,
                       "also start a container with the devices and open them in it"),
                  Value(
                      "--device", &given->proof.devices, "NAME",
                      "qualified name of a device for --prove (repeatable) [all of the first kind]")
                      .Separated()
                      .Needs({"--prove"}),
                  Value("--engine", &given->proof.engine, "ENGINE",
                        "engine that starts the container of --prove: podman, containerd or crio "
                        "[the first found]")
                      .OneOf({"podman", "containerd", "crio"})
                      .Needs({"--prove"}),
                  Value("--image", &given->proof.image, "IMAGE",
                        "image in the engine's local store, for --prove; podman needs none")
                      .Needs({"--prove"})},
      .formats = command::PlainFormats(),
      .show = [given, &common]() -> base::Result<Shown> {
        return Doctor(common, given->folders,
                      given->prove ? std::optional(given->proof) : std::nullopt);
      }};
}

}  // namespace penstock::app
