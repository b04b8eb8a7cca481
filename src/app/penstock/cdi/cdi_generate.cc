// `penstock cdi generate`: asks drivers where the mode requires it, and writes the specification
// atomically.
#include "app/penstock/cdi/cdi_generate.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "api/cdi/transform.h"
#include "app/devices/backend_connection.h"
#include "app/devices/driver_root.h"
#include "app/devices/paths.h"
#include "app/penstock/cdi/cdi_verbs.h"
#include "app/penstock/common/probe_devices.h"
#include "app/penstock/common/verbs.h"
#include "backend/all.h"
#include "base/core/strings.h"
#include "base/log.h"
#include "os/core/file.h"

namespace penstock::app {
namespace {

using base::Code;
using base::Error;
using base::Result;
using node::cdi::Fits;
using node::cdi::Generated;

/// The first open of the driver after boot may load firmware, one GPU after the other.
constexpr base::Duration kPatience = std::chrono::seconds(60);

constexpr const char* kToolkitConfig = "/etc/nvidia-container-runtime/config.toml";

constexpr char kGenerateExamples[] =
    R"(penstock cdi generate                                      # this machine's GPUs, on standard output
penstock cdi generate --output /etc/cdi/nvidia.yaml        # for podman and docker, where no agent runs
penstock cdi generate --format json | jq '.devices[].name'
penstock cdi generate --mode management --output /var/run/cdi/management.json
penstock cdi generate --mode imex --device-id 0,1
penstock cdi generate --driver-root /run/nvidia/driver --dev-root / --device-name-strategy uuid)";

constexpr char kGenerateDetails[] =
    R"(An agent on the machine writes /var/run/cdi and keeps it up to date; this verb is for machines
without one. Drivers are queried in a separate process, for one minute at most; no other program of
the driver is executed. Files that were searched for and not found are reported on standard error.
The output file is replaced atomically or left unchanged.

Modes: nvml queries the driver; wsl and csv (Tegra) use the system's own lists of files; auto chooses
among these three. gds, gdrcopy, mofed, nvswitch, imex, mig-caps and management are device files that
come with GPUs; compat32 is the driver's libraries for 32-bit programs. Flags can be set by the
variables of nvidia-ctk, e.g. NVIDIA_CTK_CDI_OUTPUT_FILE_PATH.)";

void Print(const std::string& what) { std::cerr << "penstock cdi generate: " << what << "\n"; }

void Remark(const CdiOrder& order, const std::string& remark) {
  if (!order.quiet) Print(remark);
}

int Fail(const Error& error, int status) {
  Print(error.message());
  return status;
}

/// One vendor, and its driver's response once it is needed.
class Vendor {
 public:
  Vendor(const device::Dialect& dialect, device::Paths paths, node::cdi::Places places)
      : dialect_(dialect), paths_(std::move(paths)), places_(std::move(places)) {}

  const device::Dialect& dialect() const { return dialect_; }

  /// Asks the driver at the first call. Reports devices that do not respond and leaves them out.
  Result<node::cdi::Input> Gather(const CdiOrder& order) {
    if (!seen_) {
      seen_ = QueryDriver(dialect_, paths_, kPatience);
      if (seen_->ok())
        for (const std::string& problem : (*seen_)->problems) Remark(order, problem);
    }
    if (!seen_->ok()) return seen_->error();
    node::cdi::Input input{&dialect_, &(*seen_)->driver, {}};
    for (const device::Facts& facts : (*seen_)->devices) input.devices.push_back(&facts);
    return input;
  }

  /// The input for specifications that depend only on files, not on the driver.
  node::cdi::Input InputWithoutDriver() {
    static const device::Driver kUnknown;
    return {&dialect_, &kUnknown, {}};
  }

  Result<Generated> Generate(const CdiOrder& order);

 private:
  Result<const device::CdiPlatform*> PlatformHere(const std::vector<device::CdiPlatform>& platforms,
                                                  const CdiOrder& order);
  Result<Generated> GenerateRequested(const CdiOrder& order);
  node::cdi::Options OptionsFor(const CdiOrder& order, std::string_view kind) const {
    auto options = order.options;
    options.kind = KindFor(order, kind);
    return options;
  }

  const device::Dialect& dialect_;
  const device::Paths paths_;
  const node::cdi::Places places_;
  std::optional<Result<Seen>> seen_;
};

constexpr device::CdiNames kAllNames[] = {device::CdiNames::kIndex, device::CdiNames::kUuid,
                                          device::CdiNames::kTypeIndex};

/// Returns the devices that these ids name.
Result<std::vector<const device::Facts*>> Choose(const node::cdi::Input& input,
                                                 const std::vector<std::string>& ids) {
  std::vector<const device::Facts*> chosen;
  for (const std::string& id : ids) {
    const auto found =
        std::find_if(input.devices.begin(), input.devices.end(), [&](const device::Facts* facts) {
          const auto names = input.dialect->CdiNamesOf(*facts, kAllNames);
          return std::find(names.begin(), names.end(), id) != names.end();
        });
    if (found == input.devices.end()) {
      std::vector<std::string> there;
      for (const device::Facts* facts : input.devices)
        there.push_back(NumberOf(*facts) + " (" + facts->id + ")");
      return Error(Code::kNotFound,
                   "there is no device \"" + id + "\"; available: " + base::Join(there, ", "));
    }
    if (std::find(chosen.begin(), chosen.end(), *found) == chosen.end()) chosen.push_back(*found);
  }
  return chosen;
}

/// Keeps only the devices with the requested names.
base::Status KeepNamed(api::cdi::Spec& spec, const CdiOrder& order) {
  if (order.every_device) return {};
  std::vector<api::cdi::Device> kept;
  for (const std::string& id : order.devices) {
    const std::string name =
        id.starts_with("channel") ? id.substr(std::string_view("channel").size()) : id;
    const auto found = std::find_if(spec.devices.begin(), spec.devices.end(),
                                    [&](const auto& device) { return device.name == name; });
    if (found == spec.devices.end())
      return Error(Code::kNotFound, "there is no " + spec.kind + "=" + name + " here");
    kept.push_back(*found);
  }
  spec.devices = std::move(kept);
  return {};
}

/// Adds the device "none": the driver without a device. It has an edit, because a device without
/// edits is invalid (pkg/nvcdi/spec).
void AddNone(api::cdi::Spec& spec) {
  api::cdi::Device none;
  none.name = "none";
  none.edits.env = {"NVCT_EMPTY_DEVICE="};
  spec.devices.push_back(std::move(none));
}

Result<const device::CdiPlatform*> Vendor::PlatformHere(
    const std::vector<device::CdiPlatform>& platforms, const CdiOrder& order) {
  for (const device::CdiPlatform& platform : platforms) {
    const Fits fits = node::cdi::FitsPlatform(platform, InputWithoutDriver(), places_);
    if (fits == Fits::kNo) continue;
    if (fits == Fits::kYes) return &platform;
    ASSIGN(const auto input, Gather(order));
    if (node::cdi::AllOfModels(platform, input.devices)) return &platform;
  }
  return nullptr;
}

Result<Generated> Vendor::GenerateRequested(const CdiOrder& order) {
  ASSIGN(auto input, Gather(order));
  std::vector<const device::Facts*> chosen = input.devices;
  if (!order.every_device && !order.devices.empty()) {
    ASSIGN(chosen, Choose(input, order.devices));
  }
  auto options = OptionsFor(order, dialect_.cdi_kind());
  input.devices = chosen;
  ASSIGN(Generated generated, node::cdi::Generate(input, places_, options));
  if (!order.every_device && order.devices.empty()) generated.spec.devices.clear();
  if (order.none) AddNone(generated.spec);
  return generated;
}

Result<Generated> Vendor::Generate(const CdiOrder& order) {
  const auto platforms = dialect_.CdiPlatforms();
  const device::CdiPlatform* platform = nullptr;
  if (order.mode == "auto") {
    ASSIGN(platform, PlatformHere(platforms, order));
    if (platform != nullptr)
      Remark(order,
             "this machine is of the platform " + platform->name + ": mode " + platform->mode);
  }
  for (const device::CdiPlatform& one : platforms)
    if (one.mode == order.mode) platform = &one;
  if (platform != nullptr) {
    ASSIGN(Generated generated,
           node::cdi::GeneratePlatform(*platform, InputWithoutDriver(), places_,
                                       OptionsFor(order, dialect_.cdi_kind()), order.platform));
    TRY(KeepNamed(generated.spec, order));
    return generated;
  }
  for (const device::CdiClass& one : dialect_.CdiClasses()) {
    if (one.mode != order.mode) continue;
    ASSIGN(Generated generated, node::cdi::GenerateClass(one, InputWithoutDriver(), places_,
                                                         OptionsFor(order, one.kind)));
    TRY(KeepNamed(generated.spec, order));
    return generated;
  }
  ASSIGN(Generated generated, GenerateRequested(order));
  if (order.mode != "compat32") return generated;
  if (!generated.narrow)
    return Error(Code::kNotFound, "the driver has no libraries for 32-bit programs here");
  generated.spec = *std::move(generated.narrow);
  generated.spec.kind = KindFor(order, generated.spec.kind);
  return generated;
}

/// Generates the specification of the first vendor that supports the request.
Result<Generated> GenerateFor(const CdiOrder& order, const api::NodeConfig& config) {
  std::vector<std::string> problems;
  Code code = Code::kNotFound;
  for (const device::Dialect* dialect : backend::Dialects()) {
    const api::NodeConfig here = WithDriverRoot(config, *dialect);
    const device::Paths paths = PathsOf(here, dialect->vendor());
    if (!problems.empty() && !MayStart(*dialect, paths).ok()) continue;
    node::cdi::Places places = PlacesOf(here);
    places.library_folders = order.library_folders;
    places.configuration_folders = order.configuration_folders;
    auto generated = Vendor(*dialect, paths, places).Generate(order);
    if (generated.ok()) return generated;
    problems.push_back(generated.error().message());
    code = generated.error().code();
  }
  return Error(code, base::Join(problems, "\n"));
}

/// Remarks that group ids, for device files that not every user may open, require a CDI version
/// that some engines do not support (NVIDIA/nvidia-container-toolkit#1860).
void ReportVersion(const CdiOrder& order, const api::cdi::Spec& spec) {
  api::cdi::Spec without = spec;
  api::cdi::TakeGroups(without);
  const std::string version = api::cdi::MinimumVersion(spec);
  if (version == api::cdi::MinimumVersion(without)) return;
  Remark(order, "the specification has CDI version " + version +
                    ", which podman 4 cannot read; for podman 4, omit additional groups");
}

base::Status WriteOut(const CdiOrder& order, const api::cdi::Spec& spec) {
  TRY(api::cdi::Check(spec));
  const std::string text = order.json ? api::cdi::ToJson(spec) : api::cdi::ToYaml(spec);
  if (order.path.empty()) {
    const bool written =
        std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    return written ? base::Status() : base::ErrnoError(errno, "write to standard output");
  }
  TRY(os::MakeDirectories(base::FolderOf(order.path)));
  TRY(os::WriteFileAtomically(order.path, text));
  Remark(order, "wrote " + order.path + ": " + spec.kind + ", " +
                    std::to_string(spec.devices.size()) +
                    (spec.devices.size() == 1 ? " device, CDI " : " devices, CDI ") +
                    api::cdi::MinimumVersion(spec));
  return {};
}

/// Takes the driver root from NVIDIA's own configuration where no flag or variable sets it.
base::Status TakeToolkitRoot(Settings& settings) {
  if (settings.flags.contains("--driver-root") || !settings.config_file.empty()) return {};
  const auto text = os::ReadFile(kToolkitConfig);
  if (!text.ok()) return {};
  ASSIGN(const std::string root, RootOfToolkitConfig(*text, kToolkitConfig));
  if (!root.empty()) settings.flags.emplace("--driver-root", root);
  return {};
}

int Run(const Common& common, CdiRequest request) {
  base::StartLog("penstock", base::kError);
  Settings settings = common.settings;
  if (auto taken = TakeCdiEnvironment(request, settings, ::getenv); !taken.ok())
    return Fail(taken.error(), command::kUsageError);
  if (auto taken = TakeToolkitRoot(settings); !taken.ok())
    return Fail(taken.error(), command::kFailed);
  const auto config = Resolve(settings);
  if (!config.ok()) return Fail(config.error(), command::kFailed);
  if (request.hook.empty()) request.hook = config->cdi.hook;
  request.additional_gids =
      request.additional_gids || config->cdi.additional_gids == api::Switch::kOn;
  const auto order = UnderstandCdiRequest(request);
  if (!order.ok()) return Fail(order.error(), command::kUsageError);
  for (const std::string& remark : order->remarks) Remark(*order, remark);
  const auto generated = GenerateFor(*order, *config);
  if (!generated.ok()) return Fail(generated.error(), command::kFailed);
  for (const std::string& remark : generated->remarks) Remark(*order, remark);
  ReportVersion(*order, generated->spec);
  const auto written = WriteOut(*order, generated->spec);
  return written.ok() ? 0 : Fail(written.error(), command::kFailed);
}

}  // namespace

command::Verb CdiGenerateVerb(const Common& common) {
  const auto request = std::make_shared<CdiRequest>();
  return {.name = "generate",
          .summary = "Generate a specification of this machine's devices and their driver",
          .examples = kGenerateExamples,
          .details = kGenerateDetails,
          .exit_status =
              "0 generated, 1 failed (the message says why, nothing was written), 2 usage "
              "error",
          .options = CdiOptions(*request),
          .shares = {"--config", "--driver-root", "--dev-root"},
          .run = [request, &common] { return Run(common, *request); }};
}

}  // namespace penstock::app
