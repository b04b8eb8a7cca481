// Flags, variables and defaults follow cmd/nvidia-ctk/cdi/generate/generate.go.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "app/penstock/cdi/cdi_generate.h"
#include "app/penstock/common/programs.h"
#include "backend/all.h"
#include "base/core/strings.h"
#include "base/toml.h"
#include "os/core/file.h"

namespace penstock::app {
namespace {

using base::Code;
using base::Error;
using command::Flag;
using command::Value;

constexpr const char* kAuto = "auto";
constexpr const char* kGroup = "Options of nvidia-ctk cdi generate";
constexpr const char* kHook = "penstock-hook";
constexpr const char* kUsualHook = "/usr/bin/penstock-hook";

struct TextFlag {
  const char* flags;
  const char* variable;
  std::string CdiRequest::*member;
  const char* value;
  const char* help;
};
constexpr std::array kTexts{
    TextFlag{"--output", "NVIDIA_CTK_CDI_OUTPUT_FILE_PATH", &CdiRequest::output, "FILE",
             "output file [standard output]"},
    TextFlag{"--format", "NVIDIA_CTK_CDI_GENERATE_OUTPUT_FORMAT", &CdiRequest::format, "FORMAT",
             "yaml or json [by the file's name, else yaml]"},
    TextFlag{"--mode,--discovery-mode", "NVIDIA_CTK_CDI_GENERATE_MODE", &CdiRequest::mode, "MODE",
             "which devices to find, and how [auto]"},
    TextFlag{"--vendor,--cdi-vendor", "NVIDIA_CTK_CDI_GENERATE_VENDOR", &CdiRequest::vendor,
             "VENDOR", "first part of the kind [by the mode: nvidia.com, management.nvidia.com]"},
    TextFlag{"--class,--cdi-class", "NVIDIA_CTK_CDI_GENERATE_CLASS", &CdiRequest::class_name,
             "CLASS", "second part of the kind [by the mode: gpu, gds, imex-channel, ...]"},
    TextFlag{"--nvidia-cdi-hook-path,--nvidia-ctk-path", "NVIDIA_CTK_CDI_HOOK_PATH",
             &CdiRequest::hook, "PROGRAM",
             "the hook program for containers, by its path on the host [penstock-hook beside this "
             "program]"},
    TextFlag{"--ldconfig-path", "NVIDIA_CTK_CDI_GENERATE_LDCONFIG_PATH", &CdiRequest::ldconfig,
             "PROGRAM", "ldconfig on the host, for hooks that need it; penstock-hook does not"}};

struct ListFlag {
  const char* flags;
  const char* variable;
  std::vector<std::string> CdiRequest::*member;
  const char* value;
  const char* help;
};
constexpr std::array kLists{
    ListFlag{"--device-name-strategy", "NVIDIA_CTK_CDI_GENERATE_DEVICE_NAME_STRATEGIES",
             &CdiRequest::names, "STRATEGY", "index (0), uuid or type-index (gpu0) [index,uuid]"},
    ListFlag{"--device-id,--device-ids,--device,--devices", "NVIDIA_CTK_CDI_GENERATE_DEVICE_IDS",
             &CdiRequest::devices, "ID",
             "only these devices: indices, UUIDs, channels, or none [all]"},
    ListFlag{"--config-search-path", "NVIDIA_CTK_CDI_GENERATE_CONFIG_SEARCH_PATHS",
             &CdiRequest::configuration_folders, "DIR",
             "folders of configuration files, searched before the default ones"},
    ListFlag{"--library-search-path", "NVIDIA_CTK_CDI_GENERATE_LIBRARY_SEARCH_PATHS",
             &CdiRequest::library_folders, "DIR",
             "folders of libraries, searched before the default ones"},
    ListFlag{"--csv.file", "NVIDIA_CTK_CDI_GENERATE_CSV_FILES", &CdiRequest::lists, "FILE",
             "lists of files, in mode csv [the system's]"},
    ListFlag{"--csv.ignore-pattern", "NVIDIA_CTK_CDI_GENERATE_CSV_IGNORE_PATTERNS",
             &CdiRequest::ignored_links, "GLOB",
             "links of these lists to omit; **/NAME matches by name"},
    ListFlag{"--disable-hook,--disable-hooks", "NVIDIA_CTK_CDI_GENERATE_DISABLED_HOOKS",
             &CdiRequest::disabled_hooks, "HOOK", "hooks to omit, or all"},
    ListFlag{"--enable-hook,--enable-hooks", "NVIDIA_CTK_CDI_GENERATE_ENABLED_HOOKS",
             &CdiRequest::enabled_hooks, "HOOK",
             "hooks to include, even if omitted by default or by --disable-hook"},
    ListFlag{"--feature-flag,--feature-flags", "NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS",
             &CdiRequest::features, "NAME",
             "no-additional-gids-for-device-nodes, which is the default; others have no effect"}};

constexpr const char* kNoAll = "--no-all-device";
constexpr const char* kNoAllVariable = "NVIDIA_CTK_CDI_GENERATE_NO_ALL_DEVICE";

struct RootFlag {
  const char* flag;
  const char* variable;
};
constexpr std::array kRoots{RootFlag{"--driver-root", "NVIDIA_CTK_DRIVER_ROOT"},
                            RootFlag{"--dev-root", "NVIDIA_CTK_DEV_ROOT"}};

/// Returns the first of flags like "--mode,--discovery-mode".
std::string FirstOf(const char* flags) { return base::Split(flags, ',').front(); }

std::vector<std::string> Words(std::string_view value) {
  std::vector<std::string> words;
  for (const std::string& word : base::Split(value, ','))
    if (const auto trimmed = base::Trim(word); !trimmed.empty()) words.emplace_back(trimmed);
  return words;
}

/// Parses what Go's strconv.ParseBool accepts.
std::optional<bool> ToBool(const std::string& value) {
  constexpr std::array kTrue{"1", "t", "T", "TRUE", "true", "True"},
      kFalse{"0", "f", "F", "FALSE", "false", "False"};
  if (std::find(kTrue.begin(), kTrue.end(), value) != kTrue.end()) return true;
  if (std::find(kFalse.begin(), kFalse.end(), value) != kFalse.end()) return false;
  return std::nullopt;
}

std::string Absolute(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error).lexically_normal().string();
  return error ? path : absolute;
}

std::string OnPath(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : base::Split(path == nullptr ? "" : path, ':'))
    if (!folder.empty() && os::Exists(folder + "/" + name)) return Absolute(folder + "/" + name);
  return "";
}

}  // namespace

std::vector<std::string> CdiModes() {
  std::vector<std::string> modes{"nvml", "compat32"};
  for (const device::Dialect* dialect : backend::Dialects()) {
    for (const auto& one : dialect->CdiClasses()) modes.push_back(one.mode);
    for (const auto& one : dialect->CdiPlatforms()) modes.push_back(one.mode);
  }
  std::sort(modes.begin(), modes.end());
  modes.insert(modes.begin(), kAuto);
  return modes;
}

std::vector<command::Option> CdiOptions(CdiRequest& request) {
  std::vector<command::Option> options;
  for (const TextFlag& one : kTexts) {
    options.push_back(Value(one.flags, &(request.*one.member), one.value, one.help)
                          .InAnyCase()
                          .Given(&request.given[FirstOf(one.flags)])
                          .Group(kGroup));
    if (one.member == &CdiRequest::format) options.back().choices = {"yaml", "json"};
    if (one.member == &CdiRequest::mode) options.back().choices = CdiModes();
  }
  for (const ListFlag& one : kLists) {
    options.push_back(Value(one.flags, &(request.*one.member), one.value, one.help)
                          .Separated()
                          .Given(&request.given[FirstOf(one.flags)])
                          .Group(kGroup));
    if (one.member == &CdiRequest::names) options.back().choices = {"index", "uuid", "type-index"};
  }
  options.push_back(Flag(kNoAll, &request.no_all, "no device \"all\"")
                        .Given(&request.given[kNoAll])
                        .Group(kGroup));
  options.push_back(Flag("--additional-gids", &request.additional_gids,
                         "add containers to the groups of device files with restricted access; "
                         "requires CDI 0.7.0, which podman 4 cannot read"));
  options.push_back(Flag("--quiet", &request.quiet, "print errors only").Group(kGroup));
  // Flags that scripts for nvidia-ctk may pass and that have no effect here.
  options.push_back(Flag("-d,--debug", &request.debug).Hidden());
  options.push_back(Value("--csv.compat-container-root", &request.compat_root, "DIR").Hidden());
  return options;
}

base::Status TakeCdiEnvironment(CdiRequest& request, Settings& settings,
                                const std::function<const char*(const char*)>& lookup) {
  const auto value_of = [&](const std::string& flag, const char* variable) -> const char* {
    if (request.given[flag]) return nullptr;
    const char* value = lookup(variable);
    return value != nullptr && *value != '\0' ? value : nullptr;
  };
  for (const TextFlag& one : kTexts)
    if (const char* value = value_of(FirstOf(one.flags), one.variable)) request.*one.member = value;
  for (const ListFlag& one : kLists)
    if (const char* value = value_of(FirstOf(one.flags), one.variable))
      request.*one.member = Words(value);
  for (const RootFlag& one : kRoots)
    if (const char* value = lookup(one.variable); value != nullptr && *value != '\0')
      settings.flags.try_emplace(one.flag, value);
  if (const char* value = value_of(kNoAll, kNoAllVariable)) {
    const auto no_all = ToBool(value);
    if (!no_all)
      return Error(Code::kInvalidArgument,
                   std::string(kNoAllVariable) + " is \"" + value + "\"; use true or false");
    request.no_all = *no_all;
  }
  return {};
}

base::Result<std::string> RootOfToolkitConfig(std::string_view text, const std::string& file) {
  ASSIGN(const base::Value document, base::ParseToml(text, file));
  const base::Value* section = document.Find("nvidia-container-cli");
  const base::Value* root = section == nullptr ? nullptr : section->Find("root");
  return root != nullptr && root->kind == base::Value::Kind::kString ? root->text : std::string();
}

namespace {

/// Builds an order and collects the problems of the request.
class Reading {
 public:
  explicit Reading(const CdiRequest& request) : request_(request) {}

  base::Result<CdiOrder> Understand() {
    TakeMode();
    TakeOutput();
    TakeKind();
    TakeNames();
    TakeDevices();
    TakeHooks();
    TakeFeatures();
    order_.options.all = !request_.no_all && !order_.none;
    order_.options.ldconfig = request_.ldconfig;
    order_.configuration_folders = request_.configuration_folders;
    order_.library_folders = request_.library_folders;
    for (const std::string& list : request_.lists) order_.platform.lists.push_back(Absolute(list));
    order_.platform.ignored_links = request_.ignored_links;
    order_.quiet = request_.quiet;
    if (request_.debug)
      order_.remarks.emplace_back(
          "--debug has no effect: files that were not found are always reported");
    if (!request_.compat_root.empty())
      order_.remarks.push_back("--csv.compat-container-root " + request_.compat_root +
                               " has no effect: CUDA's compatibility libraries are searched for in "
                               "each image when it starts");
    if (!problems_.empty()) return Error(Code::kInvalidArgument, base::Join(problems_, "\n"));
    return std::move(order_);
  }

 private:
  void TakeMode() {
    order_.mode = request_.mode.empty() ? kAuto : base::ToLower(request_.mode);
    const auto modes = CdiModes();
    if (std::find(modes.begin(), modes.end(), order_.mode) == modes.end())
      problems_.push_back("\"" + request_.mode + "\" is not a mode; use one of " +
                          base::Join(modes, ", "));
  }

  /// Engines read only *.json and *.yaml: other names get the suffix (pkg/nvcdi/spec/spec.go).
  void TakeOutput() {
    const std::string format = base::ToLower(request_.format);
    if (!format.empty() && format != "yaml" && format != "json")
      problems_.push_back("\"" + request_.format + "\" is not a format; use yaml or json");
    order_.json = format == "json";
    if (request_.output.empty()) return;
    order_.path = Absolute(request_.output);
    const std::string suffix = std::filesystem::path(order_.path).extension().string();
    if (suffix == ".yml")
      order_.path.replace(order_.path.size() - suffix.size(), suffix.size(), ".yaml");
    const bool is_yaml = suffix == ".yml" || suffix == ".yaml", is_json = suffix == ".json";
    if (!is_yaml && !is_json) order_.path += order_.json ? ".json" : ".yaml";
    if (format.empty()) {
      order_.json = is_json;
    } else if ((is_yaml && order_.json) || (is_json && !order_.json)) {
      order_.remarks.push_back(order_.path + " is written as " + format +
                               ", although its name says otherwise");
    }
    if (order_.path != Absolute(request_.output))
      order_.remarks.push_back("engines read *.json and *.yaml only: written to " + order_.path);
  }

  void TakeKind() {
    order_.vendor = request_.vendor;
    order_.class_name = request_.class_name;
    const std::string kind = KindFor(order_, "nvidia.com/gpu");
    if (const std::string why = api::cdi::WhyNoKind(kind); !why.empty())
      problems_.push_back("\"" + kind + "\" is not a kind: " + why);
  }

  void TakeNames() {
    if (request_.names.empty()) return;
    order_.options.names.clear();
    for (const std::string& name : request_.names) {
      if (name == "index") {
        order_.options.names.push_back(device::CdiNames::kIndex);
      } else if (name == "uuid") {
        order_.options.names.push_back(device::CdiNames::kUuid);
      } else if (name == "type-index") {
        order_.options.names.push_back(device::CdiNames::kTypeIndex);
      } else {
        problems_.push_back("\"" + name + "\" is not a strategy; use index, uuid or type-index");
      }
    }
  }

  void TakeDevices() {
    order_.devices = request_.devices;
    order_.none = std::erase(order_.devices, "none") > 0;
    order_.every_device = request_.devices.empty() || std::erase(order_.devices, "all") > 0;
  }

  void TakeHooks() {
    order_.options.disable_hooks = request_.disabled_hooks;
    order_.options.enable_hooks = request_.enabled_hooks;
    if (std::find(request_.enabled_hooks.begin(), request_.enabled_hooks.end(), "all") !=
        request_.enabled_hooks.end())
      problems_.push_back("hooks are enabled by their names, not by \"all\"");
    order_.options.hook = Hook();
  }

  std::string Hook() {
    const std::string& given = request_.hook;
    if (given.find('/') != std::string::npos) return Absolute(given);
    if (!given.empty()) {
      if (std::string found = OnPath(given); !found.empty()) return found;
      problems_.push_back("there is no " + given +
                          " in the folders of PATH; pass the full path of the hook");
      return "";
    }
    if (auto found = FindProgram(kHook); found.ok()) return *std::move(found);
    if (std::string found = OnPath(kHook); !found.empty()) return found;
    order_.remarks.push_back(
        "there is no " + std::string(kHook) + " here: the specification names " + kUsualHook +
        ", which must exist for containers with its devices to start (see --nvidia-cdi-hook-path)");
    return kUsualHook;
  }

  /// Group ids require a CDI version that some engines do not support
  /// (NVIDIA/nvidia-container-toolkit#1860). They are added on request only, as in the agent.
  void TakeFeatures() {
    order_.options.additional_gids = request_.additional_gids;
    for (const std::string& feature : request_.features) {
      if (feature == "no-additional-gids-for-device-nodes") {
        order_.options.additional_gids = false;
      } else {
        order_.remarks.push_back("the feature \"" + feature +
                                 "\" is unknown to penstock and has no effect");
      }
    }
  }

  const CdiRequest& request_;
  CdiOrder order_;
  std::vector<std::string> problems_;
};

}  // namespace

base::Result<CdiOrder> UnderstandCdiRequest(const CdiRequest& request) {
  return Reading(request).Understand();
}

std::string KindFor(const CdiOrder& order, std::string_view kind) {
  const auto slash = kind.find('/');
  return (order.vendor.empty() ? std::string(kind.substr(0, slash)) : order.vendor) + "/" +
         (order.class_name.empty() ? std::string(kind.substr(slash + 1)) : order.class_name);
}

}  // namespace penstock::app
