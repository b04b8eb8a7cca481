// `penstock cdi`: the group of its verbs, with the flags of `nvidia-ctk cdi`.
#include <memory>
#include <utility>

#include "app/penstock/cdi/cdi_files.h"
#include "app/penstock/cdi/cdi_verbs.h"

namespace penstock::app {

namespace {

using command::Option;

constexpr char kExamples[] =
    R"(penstock cdi list                      # the devices that `podman run --device NAME` and other engines can request here
penstock cdi validate                  # everything that prevents a device from being injected
penstock cdi generate --output /etc/cdi/nvidia.yaml)";

constexpr char kListExamples[] =
    R"(penstock cdi list
penstock cdi list -o wide                                # and the file that defines each
penstock cdi list --spec-dir /etc/cdi --spec-dir /var/run/cdi
podman run --rm --device nvidia.com/gpu=0 ubuntu nvidia-smi -L    # one of the names)";

constexpr char kValidateExamples[] =
    R"(penstock cdi validate                                    # all of the folders, together
penstock cdi validate /etc/cdi/nvidia.yaml
penstock cdi generate | penstock cdi validate -
penstock cdi validate -o json | jq -r '.files[] | [.file, .kind, .minimumVersion] | @tsv')";

constexpr char kTransformExamples[] =
    R"(penstock cdi transform root --from /run/nvidia/driver --to / < driver.yaml > host.yaml
penstock cdi transform root --from / --to /host --input /etc/cdi/nvidia.yaml --output /tmp/nvidia.yaml
penstock cdi transform root --relative-to container --from /driver --to / --input spec.json)";

/// nvidia-ctk accepts these flags before each verb. For list and transform they have no effect.
struct ToolkitFlags {
  bool quiet = false, debug = false;

  void AddTo(std::vector<Option>& options) {
    options.push_back(Flag("--quiet", &quiet).Hidden());
    options.push_back(Flag("-d,--debug", &debug).Hidden());
  }
};

Verb ListVerb(const Common& common) {
  struct Given {
    std::vector<std::string> folders = DefaultSpecFolders();
    ToolkitFlags toolkit;
  };
  const auto given = std::make_shared<Given>();
  Verb verb{.name = "list",
            .summary = "List the devices that containers can request",
            .examples = kListExamples,
            .details = "Files that engines cannot read are reported on standard error.",
            .exit_status = "0 shown",
            .options = {SpecFolders(given->folders)},
            .formats = command::WideFormats(),
            .names = {"", ".devices[*].name"},
            .show = [given, &common] { return ListCdi(common, given->folders); }};
  given->toolkit.AddTo(verb.options);
  return verb;
}

Verb ValidateSpecsVerb(const Common& common) {
  struct Given {
    std::vector<std::string> files, folders = DefaultSpecFolders();
  };
  const auto given = std::make_shared<Given>();
  return {
      .name = "validate",
      .summary = "Check specifications, and whether the files that they name exist",
      .examples = kValidateExamples,
      .details =
          "Checks files as container engines do and reports each problem with line and column; "
          "also checks whether device files, mounts and hooks that they name exist on this "
          "machine. Nothing is written.",
      .exit_status = "0 valid, 1 there are problems, all of them shown",
      .options = {Argument(
                      "FILE", &given->files,
                      "specifications, JSON or YAML; - for standard input [all in the folders]"),
                  SpecFolders(given->folders)},
      .formats = {"text", "json", "yaml", "jsonpath=TEMPLATE"},
      .show = [given, &common] { return ValidateCdi(common, given->files, given->folders); }};
}

Verb TransformVerb() {
  struct Given {
    CdiRootChange change;
    ToolkitFlags toolkit;
  };
  const auto given = std::make_shared<Given>();
  CdiRootChange& change = given->change;
  const auto check_root = [](const std::string& root) -> std::string {
    return root.empty() || root.starts_with('/') ? "" : "\"" + root + "\" is not an absolute path";
  };
  Verb root{.name = "root",
            .summary = "Move the paths below one root to another",
            .examples = kTransformExamples,
            .exit_status = "0 done, 1 the specification cannot be read or written, 2 usage error",
            .options =
                {Value("--from", &change.from, "PATH", "current root of the paths [/]")
                     .Checked(check_root),
                 Value("--to", &change.to, "PATH", "new root of the paths [/]").Checked(check_root),
                 Value("--relative-to", &change.relative_to, "SIDE",
                       "which paths: those of the host or those of the container [host]")
                     .OneOf({"host", "container"}),
                 Value("--input", &change.input, "FILE", "the specification [standard input]"),
                 Value("--output", &change.output, "FILE",
                       "output file, JSON if its name ends in .json, else YAML [standard output]")},
            .show = [given] { return TransformCdiRoot(given->change); }};
  given->toolkit.AddTo(root.options);
  return {.name = "transform",
          .summary = "Rewrite a specification for another view of the same machine",
          .examples = kTransformExamples,
          .exit_status = root.exit_status,
          .verbs = {std::move(root)}};
}

}  // namespace

command::Option SpecFolders(std::vector<std::string>& folders) {
  return Value("--spec-dir", &folders, "FOLDER",
               "folders of specifications, highest priority last (repeatable) "
               "[/etc/cdi,/var/run/cdi]")
      .Separated()
      .Environment("NVIDIA_CTK_CDI_SPEC_DIRS");
}

Verb CdiVerb(const Common& common) {
  return {.name = "cdi",
          .summary =
              "Specifications of the Container Device Interface, by which engines give devices to "
              "containers",
          .examples = kExamples,
          .exit_status = "0 done, 1 failed or there are problems, 2 usage error",
          .verbs = {CdiGenerateVerb(common), ListVerb(common), ValidateSpecsVerb(common),
                    TransformVerb()}};
}

}  // namespace penstock::app
