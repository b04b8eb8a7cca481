// `penstock cdi`: the group of its verbs, with the flags of `nvidia-ctk cdi`.
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>

#include "app/penstock/cdi/cdi_files.h"
#include "app/penstock/cdi/cdi_verbs.h"

namespace penstock::app {

namespace {

constexpr char kFooter[] = R"(Examples:
  penstock cdi list                      # the devices that `podman run --device NAME` and other engines can request here
  penstock cdi validate                  # everything that prevents a device from being injected
  penstock cdi generate --output /etc/cdi/nvidia.yaml)";

constexpr char kListFooter[] = R"(Examples:
  penstock cdi list
  penstock cdi list -o wide                                # and the file that defines each
  penstock cdi list --spec-dir /etc/cdi --spec-dir /var/run/cdi
  podman run --rm --device nvidia.com/gpu=0 ubuntu nvidia-smi -L    # one of the names

Files that engines cannot read are reported on standard error.

Exit status: 0 shown.)";

constexpr char kValidateFooter[] = R"(Examples:
  penstock cdi validate                                    # all of the folders, together
  penstock cdi validate /etc/cdi/nvidia.yaml
  penstock cdi generate | penstock cdi validate -
  penstock cdi validate -o json | jq -r '.files[] | [.file, .kind, .minimumVersion] | @tsv'

Checks files as container engines do and reports each problem with line and column; also checks whether device files, mounts and
hooks that they name exist on this machine. Nothing is written.

Exit status: 0 valid, 1 there are problems, all of them shown.)";

constexpr char kTransformFooter[] = R"(Examples:
  penstock cdi transform root --from /run/nvidia/driver --to / < driver.yaml > host.yaml
  penstock cdi transform root --from / --to /host --input /etc/cdi/nvidia.yaml --output /tmp/nvidia.yaml
  penstock cdi transform root --relative-to container --from /driver --to / --input spec.json

Exit status: 0 done, 1 the specification cannot be read or written.)";

void AddSpecFolders(CLI::App& verb, std::vector<std::string>& folders) {
  verb.add_option("--spec-dir", folders,
                  "folders of specifications, highest priority last (repeatable)")
      ->type_name("FOLDER")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->envname("NVIDIA_CTK_CDI_SPEC_DIRS")
      ->default_str("/etc/cdi,/var/run/cdi");
}

/// nvidia-ctk accepts these flags before each verb. For list and transform they have no effect.
void AddToolkitFlags(CLI::App& verb) {
  verb.add_flag("--quiet")->group("");
  verb.add_flag("--debug,-d")->group("");
}

void AddList(CLI::App& cdi, const Common& common, int& exit_code) {
  CLI::App* verb =
      cdi.add_subcommand("list", "List the devices that containers can request")->fallthrough();
  verb->footer(kListFooter);
  const auto folders = std::make_shared<std::vector<std::string>>(DefaultSpecFolders());
  AddSpecFolders(*verb, *folders);
  AddToolkitFlags(*verb);
  verb->callback([&common, &exit_code, folders] { exit_code = ListCdi(common, *folders); });
}

void AddValidate(CLI::App& cdi, const Common& common, int& exit_code) {
  CLI::App* verb =
      cdi.add_subcommand("validate",
                         "Check specifications, and whether the files that they name exist")
          ->fallthrough();
  verb->footer(kValidateFooter);
  struct Given {
    std::vector<std::string> files, folders = DefaultSpecFolders();
  };
  const auto given = std::make_shared<Given>();
  verb->add_option("FILE", given->files,
                   "specifications, JSON or YAML; - for standard input [all in the folders]")
      ->type_name("");
  AddSpecFolders(*verb, given->folders);
  verb->callback([&common, &exit_code, given] {
    exit_code = ValidateCdi(common, given->files, given->folders);
  });
}

void AddTransform(CLI::App& cdi, int& exit_code) {
  CLI::App* transform = cdi.add_subcommand(
      "transform", "Rewrite a specification for another view of the same machine");
  transform->require_subcommand(1);
  CLI::App* verb = transform->add_subcommand("root", "Move the paths below one root to another");
  verb->footer(kTransformFooter);
  AddToolkitFlags(*verb);
  const auto change = std::make_shared<CdiRootChange>();
  verb->add_option("--from", change->from, "current root of the paths [/]")->type_name("PATH");
  verb->add_option("--to", change->to, "new root of the paths [/]")->type_name("PATH");
  verb->add_option("--relative-to", change->relative_to,
                   "which paths: those of the host or those of the container")
      ->type_name("SIDE")
      ->check(CLI::IsMember({"host", "container"}))
      ->capture_default_str();
  verb->add_option("--input", change->input, "the specification; - for standard input")
      ->type_name("FILE")
      ->capture_default_str();
  verb->add_option("--output", change->output,
                   "output file, JSON if its name ends in .json, else YAML [standard output]")
      ->type_name("FILE");
  verb->callback([&exit_code, change] { exit_code = TransformCdiRoot(*change); });
}

}  // namespace

void AddCdi(CLI::App& app, const Common& common, int& exit_code) {
  CLI::App* cdi = app.add_subcommand("cdi",
                                     "Specifications of the Container Device Interface, by which "
                                     "engines give devices to containers")
                      ->fallthrough();
  cdi->footer(kFooter);
  cdi->require_subcommand(1);
  AddCdiGenerate(*cdi, common, exit_code);
  AddList(*cdi, common, exit_code);
  AddValidate(*cdi, common, exit_code);
  AddTransform(*cdi, exit_code);
}

}  // namespace penstock::app
