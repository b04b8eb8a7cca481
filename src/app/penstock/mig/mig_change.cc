// The verbs of `penstock mig` that change how GPUs are divided, and `checkpoint`, whose files one
// of them reads. Their flags are those of `nvidia-mig-parted`.
#include <memory>
#include <utility>

#include "app/penstock/mig/mig_apply.h"
#include "app/penstock/mig/mig_checkpoint.h"
#include "app/penstock/mig/mig_machine.h"
#include "app/penstock/mig/mig_verbs.h"
#include "base/core/quantity.h"

namespace penstock::app {
namespace {

using command::Option;

constexpr char kApplyExamples[] =
    R"(penstock mig apply -f layouts.yaml -c all-balanced
penstock mig apply -f layouts.yaml -c all-1g.5gb --wait 10m    # as soon as holders release them
penstock mig export > before.yaml && penstock mig apply -f before.yaml)";

constexpr char kApplyDetails[] =
    R"(The agent divides the GPUs: see penstock mig plan for the steps. Parts that are in the layout stay, and
parts that are held are never destroyed; without --wait, nothing changes if one is in the way. A GPU
that cannot be divided so becomes as it was before. The layout applies until another one does: after
a reboot the GPUs are divided again, before pods get them.)";

constexpr char kCheckpointExamples[] =
    R"(penstock mig checkpoint -f before.json
penstock mig checkpoint -f - | jq .)";

constexpr char kRestoreExamples[] =
    R"(penstock mig restore -f before.json
penstock mig restore -f before.json --wait 10m    # as soon as holders release what is in the way)";

constexpr char kRestoreDetails[] =
    R"(The GPUs get exactly the GPU and compute instances of the file, at the same places; those that exist
stay. GPUs that the file does not name stay as they are. Otherwise as penstock mig apply.)";

/// The options of verbs that divide GPUs.
struct GivenChange {
  bool mode_only = false, skip_reset = false;
  std::string wait, hooks_file;

  void AddTo(Verb& verb) {
    verb.options.push_back(Flag("-m,--mode-only", &mode_only,
                                "only enable or disable MIG, and leave the MIG devices as they are")
                               .Environment("MIG_PARTED_MODE_CHANGE_ONLY"));
    verb.options.push_back(Flag("-s,--skip-reset", &skip_reset,
                                "do not reset GPUs: with --mode-only the mode of those that need a "
                                "reset stays pending, otherwise they fail")
                               .Environment("MIG_PARTED_SKIP_RESET"));
    verb.options.push_back(Value("-k,--hooks-file", &hooks_file, "FILE",
                                 "hooks file of mig-parted: programs that run before and after; "
                                 "only root may be able to change it")
                               .Environment("MIG_PARTED_HOOKS_FILE"));
    verb.options.push_back(Value("--wait", &wait, "TIME",
                                 "how long to wait for holders of what must be destroyed, e.g. 10m "
                                 "[do not wait]"));
  }

  Result<ApplyRequest> Request(api::Layout layout) const {
    ApplyRequest request{
        .layout = std::move(layout),
        .mode_only = mode_only,
        .skip_reset = skip_reset,
        .hooks_file = hooks_file,
        .hook_environment = {{"MIG_PARTED_MODE_CHANGE_ONLY", mode_only ? "true" : "false"},
                             {"MIG_PARTED_HOOKS_FILE", hooks_file}}};
    if (wait.empty()) return request;
    auto time = base::ParseDuration(wait);
    if (!time.ok()) return time.error().Within("--wait");
    request.wait = *time;
    return request;
  }
};

constexpr char kChangeStatus[] =
    "0 each GPU is divided so, 1 one is not (the message says why), 2 usage error";

Option CheckpointFile(std::string& file) {
  return Value("-f,--checkpoint-file", &file, "FILE",
               "checkpoint of mig-parted; - is standard input or output")
      .Environment("MIG_PARTED_CHECKPOINT_FILE");
}

base::Status CheckFile(const std::string& file) {
  if (!file.empty()) return {};
  return Error(Code::kInvalidArgument, "--checkpoint-file is required");
}

}  // namespace

Verb MigApplyVerb(const Common& common) {
  const auto given = std::make_shared<GivenLayout>();
  const auto change = std::make_shared<GivenChange>();
  Verb verb{.name = "apply",
            .summary = "Divide the GPUs as a layout says",
            .examples = kApplyExamples,
            .details = kApplyDetails,
            .exit_status = kChangeStatus,
            .formats = command::PlainFormats(),
            .check = [given] { return given->Check(); },
            .show = [given, change, &common]() -> Result<Shown> {
              ASSIGN(api::Layout layout, ReadLayout(given->file, given->name));
              ASSIGN(ApplyRequest request, change->Request(std::move(layout)));
              request.hook_environment.insert(
                  {{"MIG_PARTED_CONFIG_FILE", given->file},
                   {"MIG_PARTED_SELECTED_CONFIG", request.layout.name},
                   {"MIG_PARTED_SKIP_RESET", change->skip_reset ? "true" : "false"}});
              ASSIGN(Shown shown, ApplyMigLayout(common, request));
              return Worded(common, std::move(shown), "MIG configuration applied successfully");
            }};
  given->AddTo(verb.options);
  change->AddTo(verb);
  return verb;
}

Verb MigCheckpointVerb(const Common& common) {
  const auto file = std::make_shared<std::string>();
  return {.name = "checkpoint",
          .summary = "Write how the GPUs are divided now, with the place of each part, into a file",
          .examples = kCheckpointExamples,
          .exit_status = "0 written, 1 failed (the message says why), 2 usage error",
          .options = {CheckpointFile(*file)},
          .check = [file] { return CheckFile(*file); },
          .show = [file, &common]() -> Result<Shown> {
            ASSIGN(const MigMachine machine, LookAtMachine(common));
            ASSIGN(const auto checkpoint, CheckpointOf(machine));
            TRY(WriteMigFile(*file, api::compat::WriteMigCheckpoint(checkpoint)));
            if (*file == "-") return Shown("\n");
            return Worded(common, Shown("Wrote " + Printable(*file) + "."),
                          "MIG configuration checkpointed successfully");
          }};
}

Verb MigRestoreVerb(const Common& common) {
  const auto file = std::make_shared<std::string>();
  const auto change = std::make_shared<GivenChange>();
  Verb verb{.name = "restore",
            .summary = "Divide the GPUs exactly as a checkpoint says",
            .examples = kRestoreExamples,
            .details = kRestoreDetails,
            .exit_status = kChangeStatus,
            .options = {CheckpointFile(*file)},
            .formats = command::PlainFormats(),
            .check = [file] { return CheckFile(*file); },
            .show = [file, change, &common]() -> Result<Shown> {
              ASSIGN(const std::string text, ReadMigFile(*file));
              ASSIGN(const auto checkpoint, api::compat::ReadMigCheckpoint(text, *file));
              ASSIGN(const MigMachine machine, LookAtMachine(common));
              ASSIGN(api::Layout layout, LayoutOf(checkpoint, machine, change->mode_only));
              ASSIGN(ApplyRequest request, change->Request(std::move(layout)));
              request.hook_environment["MIG_PARTED_CHECKPOINT_FILE"] = *file;
              const auto restored = [&]() -> Result<Shown> {
                if (request.layout.rules.empty())
                  return Error(Code::kNotFound, Printable(*file) + " has no GPUs");
                return ApplyMigLayout(common, request);
              };
              ASSIGN(Shown shown, restored());
              return Worded(common, std::move(shown), "MIG configuration restored successfully");
            }};
  change->AddTo(verb);
  return verb;
}

}  // namespace penstock::app
