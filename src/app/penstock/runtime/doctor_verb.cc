// Formats the findings and defines the command line of `penstock runtime doctor`.
#include "app/penstock/runtime/doctor_verb.h"

#include <algorithm>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "app/penstock/cdi/cdi_files.h"
#include "app/penstock/common/table.h"
#include "app/penstock/common/verbs.h"

namespace penstock::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr char kFooter[] = R"(Examples:
  penstock runtime doctor
  penstock runtime doctor --prove                   # and start a container that opens the devices
  penstock runtime doctor --prove --device nvidia.com/gpu=0 --engine podman
  penstock runtime doctor --prove --engine containerd --image registry.k8s.io/pause:3.10    # the kubelet's way, in a pod
  penstock runtime doctor -o json | jq -r '.findings[] | select(.state == "bad") | .why'

Finds what makes devices disappear silently: specifications that engines skip, that conflict with each other or are for
a driver that is no longer loaded; engines that are too old, have CDI disabled or read another folder. Changes nothing;
what must be written is shown line by line.

Exit status: 0 no problems were found, 1 problems were found.)";

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

int Doctor(const Common& common, const std::vector<std::string>& folders,
           const std::optional<Proof>& proof) {
  const analysis::DoctorFacts facts = Gather(folders);
  std::vector<analysis::DoctorFinding> findings = analysis::Judge(facts);
  if (proof) {
    const auto proved = Prove(*proof, facts);
    findings.insert(findings.end(), proved.begin(), proved.end());
  }
  const Style style = StyleOf(STDOUT_FILENO);
  std::cout << (common.json ? FindingsJson(findings) : ShowFindings(findings, style));
  return std::cout.flush() && std::none_of(findings.begin(), findings.end(), IsBad) ? 0 : 1;
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
  return tree.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void AddRuntimeDoctor(CLI::App& runtime, const Common& common, int& exit_code) {
  CLI::App* verb =
      runtime
          .add_subcommand("doctor",
                          "Find what makes devices disappear from containers, and what to write")
          ->fallthrough();
  verb->footer(kFooter);
  struct Given {
    std::vector<std::string> folders = DefaultSpecFolders();
    bool prove = false;
    Proof proof;
  };
  const auto given = std::make_shared<Given>();
  verb->add_option("--spec-dir", given->folders,
                   "folders of specifications, highest priority last (repeatable)")
      ->type_name("FOLDER")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->default_str("/etc/cdi,/var/run/cdi");
  CLI::Option* prove = verb->add_flag(
      "--prove", given->prove, "also start a container with the devices and open them in it");
  verb->add_option("--device", given->proof.devices,
                   "qualified name of a device for --prove (repeatable) [all of the first kind]")
      ->type_name("NAME")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->needs(prove);
  verb->add_option("--engine", given->proof.engine,
                   "engine that starts the container of --prove [the first found]")
      ->type_name("ENGINE")
      ->check(CLI::IsMember({"podman", "containerd", "crio"}))
      ->needs(prove);
  verb->add_option("--image", given->proof.image,
                   "image in the engine's local store, for --prove; podman needs none")
      ->type_name("IMAGE")
      ->needs(prove);
  verb->callback([&common, &exit_code, given] {
    exit_code =
        Doctor(common, given->folders, given->prove ? std::optional(given->proof) : std::nullopt);
  });
}

}  // namespace penstock::app
