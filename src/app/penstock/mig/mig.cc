// `penstock mig`: the group of its verbs, with the flags of `nvidia-mig-parted`.
#include <algorithm>
#include <iostream>
#include <memory>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "app/penstock/mig/mig_machine.h"
#include "app/penstock/mig/mig_verbs.h"
#include "os/core/file.h"

namespace penstock::app {
namespace {

using command::Option;

constexpr char kExamples[] =
    R"(penstock mig list                                    # profiles and parts of each GPU
penstock mig apply -f layouts.yaml -c all-balanced
penstock mig plan -f layouts.yaml -c all-balanced    # the steps, without taking them
penstock mig generate-config > layouts.yaml)";

constexpr char kDetails[] =
    R"(Layouts are configurations of nvidia-mig-parted, whose files, flags and variables these verbs read.
Those that change nothing ask the driver in a process of their own; apply and restore ask the agent, and
divide the GPUs themselves where none runs. An agent on the machine is asked who holds GPUs and parts;
without one, all count as free in list and plan.)";

constexpr char kListExamples[] =
    R"(penstock mig list
penstock mig list -o yaml
penstock mig list -o json | jq -r '.devices[].profiles[].name' | sort -u)";

constexpr char kPlanExamples[] =
    R"(penstock mig plan --config-file layouts.yaml --selected-config all-balanced
penstock mig plan -f - -o json < layout.yaml | jq '.devices[].steps[].text')";

constexpr char kPlanDetails[] =
    R"(Parts that are in the layout stay, as many as possible; parts that are held are never destroyed.
Each other part has an explicit placement. See docs/mig.md.)";

constexpr char kAssertExamples[] =
    R"(penstock mig assert -f layouts.yaml -c all-balanced && echo applied
penstock mig assert -f layouts.yaml -c all-balanced --valid-config    # the file only)";

constexpr char kExportExamples[] =
    R"(penstock mig export > layouts.yaml
penstock mig export --config-label before -o json)";

constexpr char kGenerateExamples[] =
    R"(penstock mig generate-config > layouts.yaml
penstock mig generate-config -o json | jq -r '."mig-configs" | keys[]')";

Verb MigListVerb(const Common& common) {
  return {.name = "list",
          .summary = "List the profiles and parts of each GPU",
          .examples = kListExamples,
          .exit_status = "0 shown, 1 the driver does not respond",
          .formats = command::PlainFormats(),
          .show = [&common]() -> Result<Shown> {
            ASSIGN(const MigMachine machine, LookAtMachine(common, true));
            return ShowMigList(machine, common.json(), common.style());
          }};
}

Verb MigPlanVerb(const Common& common) {
  const auto given = std::make_shared<GivenLayout>();
  Verb verb{.name = "plan",
            .summary = "Show the steps to a layout, without taking them",
            .examples = kPlanExamples,
            .details = kPlanDetails,
            .exit_status =
                "0 there is a plan for each GPU, 1 failed (the message says why), 2 usage "
                "error, 3 a GPU cannot be divided as the layout says, now or at all",
            .formats = command::PlainFormats(),
            .check = [given] { return given->Check(); },
            .show = [given, &common]() -> Result<Shown> {
              ASSIGN(const api::Layout layout, ReadLayout(given->file, given->name));
              ASSIGN(const MigMachine machine, LookAtMachine(common, true));
              return ShowMigPlan(machine, layout, common.json());
            }};
  given->AddTo(verb.options);
  return verb;
}

Verb MigAssertVerb(const Common& common) {
  struct Given {
    GivenLayout layout;
    bool mode_only = false, valid_config = false;
  };
  const auto given = std::make_shared<Given>();
  Verb verb{.name = "assert",
            .summary = "Test whether a layout is applied",
            .examples = kAssertExamples,
            .exit_status = "0 it is applied, or valid, 1 it is not, or failed, 2 usage error",
            .check = [given] { return given->layout.Check(); },
            .show = [given, &common]() -> Result<Shown> {
              ASSIGN(const api::Layout layout, ReadLayout(given->layout.file, given->layout.name));
              if (given->valid_config)
                return Worded(common, Shown("Layout " + layout.name + " is valid."),
                              "Selected MIG configuration is valid");
              ASSIGN(const MigMachine machine, LookAtMachine(common));
              ASSIGN(Shown shown, AssertMigLayout(machine, layout, given->mode_only));
              return Worded(common, std::move(shown),
                            given->mode_only
                                ? "Selected MIG mode settings from configuration currently applied"
                                : "Selected MIG configuration currently applied");
            }};
  given->layout.AddTo(verb.options);
  verb.options.push_back(Flag("-m,--mode-only", &given->mode_only, "only whether MIG is enabled")
                             .Environment("MIG_PARTED_MODE_CHANGE_ONLY"));
  verb.options.push_back(Flag("-a,--valid-config", &given->valid_config,
                              "only whether the file is valid and has the layout")
                             .Environment("MIG_PARTED_VALID_CONFIG"));
  return verb;
}

Verb MigExportVerb(const Common& common) {
  const auto name = std::make_shared<std::string>("current");
  return {.name = "export",
          .summary = "Print how the GPUs are divided now, as a configuration file of mig-parted",
          .examples = kExportExamples,
          .exit_status = "0 printed, 1 the driver does not respond",
          .options = {Value("-l,--config-label", name.get(), "NAME", "the layout's name [current]")
                          .Environment("MIG_PARTED_CONFIG_LABEL")},
          .formats = {"yaml", "json"},
          .show = [name, &common]() -> Result<Shown> {
            ASSIGN(const MigMachine machine, LookAtMachine(common));
            return ExportMigLayout(machine, *name);
          }};
}

Verb MigGenerateVerb(const Common& common) {
  const auto file = std::make_shared<std::string>();
  return {
      .name = "generate-config",
      .summary = "Print layouts made from the profiles of this machine's GPUs",
      .examples = kGenerateExamples,
      .details =
          "all-disabled, all-enabled, one layout for each profile, and all-balanced, a mix "
          "that takes all slices.",
      .exit_status = "0 printed, 1 no GPU has profiles, or the driver does not respond",
      .options = {Value("-f,--output-file", file.get(), "FILE", "write a file [standard output]")
                      .Environment("MIG_PARTED_OUTPUT_FILE")},
      .formats = {"yaml", "json"},
      .show = [file, &common]() -> Result<Shown> {
        ASSIGN(const MigMachine machine, LookAtMachine(common));
        ASSIGN(Shown shown, GenerateMigLayouts(machine));
        if (file->empty()) return shown;
        ASSIGN(const std::string text, command::Format(common.output, shown.text));
        TRY(WriteMigFile(*file, text));
        return Shown("");
      }};
}

}  // namespace

void GivenLayout::AddTo(std::vector<Option>& options) {
  options.push_back(Value("-f,--config-file", &file, "FILE",
                          "configuration file of mig-parted; - is standard input")
                        .Environment("MIG_PARTED_CONFIG_FILE"));
  options.push_back(
      Value("-c,--selected-config", &name, "NAME", "the layout in the file [the only one]")
          .Environment("MIG_PARTED_SELECTED_CONFIG"));
}

base::Status GivenLayout::Check() const {
  if (!file.empty()) return {};
  return Error(Code::kInvalidArgument, "--config-file is required");
}

/// The text of mig-parted where this program has its name.
Shown Worded(const Common& common, Shown shown, const char* text) {
  return common.as_mig_parted && !common.json() ? Shown(text) : std::move(shown);
}

/// Replaces a file, or writes to what is there and is none: a pipe, a terminal.
base::Status WriteMigFile(const std::string& file, const std::string& text) {
  if (file == "-" || file == "/dev/stdout")
    return os::WriteAll(STDOUT_FILENO, text, "standard output");
  struct stat status {};
  if (::lstat(file.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    return Error(
        Code::kInvalidArgument,
        Printable(file) + " is no file that could be replaced: a link, a device or a folder");
  return os::WriteFileAtomically(file, text);
}

Verb MigVerb(const Common& common) {
  return {.name = "mig",
          .summary = "Divide GPUs into MIG devices, and show how they are divided",
          .examples = kExamples,
          .details = kDetails,
          .verbs = {MigListVerb(common), MigPlanVerb(common), MigApplyVerb(common),
                    MigAssertVerb(common), MigExportVerb(common), MigCheckpointVerb(common),
                    MigRestoreVerb(common), MigGenerateVerb(common)}};
}

}  // namespace penstock::app
