// Implements NVIDIA container toolkit's names for requests. A request by environment counts only if
// the configuration permits it.
#include "hook/runtime/nvidia/request.h"

#include <algorithm>
#include <set>
#include <utility>

#include "api/cdi/spec.h"
#include "base/core/strings.h"

namespace penstock::hook::runtime {
namespace {

constexpr std::string_view kVisibleDevices = "NVIDIA_VISIBLE_DEVICES";
constexpr std::string_view kImexChannels = "NVIDIA_IMEX_CHANNELS";
constexpr std::string_view kAcceptKey = "accept-nvidia-visible-devices-envvar-when-unprivileged";

/// The folder of mounts whose names form a list of devices (internal/config/image/cuda_image.go,
/// DeviceListAsVolumeMountsRoot).
constexpr std::string_view kMountRoot = "/var/run/nvidia-container-devices/";

/// NVML's own limit on IMEX channels (drivers/imex: 2^20 minors).
constexpr std::uint64_t kMaxImexChannel = (1u << 20) - 1;

/// The kind with which the toolkit's users request a specification that is generated on demand;
/// Penstock's specifications always exist.
constexpr std::string_view kAutomaticKind = "runtime.nvidia.com/gpu";

/// Devices that are added to GPUs if a variable is "enabled" (internal/modifier/gated.go), and
/// their CDI names.
struct Gate {
  std::string_view variable, device;
};
constexpr Gate kGates[] = {{"NVIDIA_GDS", "nvidia.com/gds=all"},
                           {"NVIDIA_MOFED", "nvidia.com/mofed=all"},
                           {"NVIDIA_GDRCOPY", "nvidia.com/gdrcopy=all"},
                           {"NVIDIA_NVSWITCH", "nvidia.com/nvswitch=all"}};

constexpr std::string_view kImexKind = "nvidia.com/imex-channel";

/// Capability files that change or monitor MIG devices: only for privileged containers.
constexpr Gate kMigGates[] = {{"NVIDIA_MIG_CONFIG_DEVICES", "nvidia.com/mig-caps=config"},
                              {"NVIDIA_MIG_MONITOR_DEVICES", "nvidia.com/mig-caps=monitor"}};

/// Names separated by commas, without surrounding blanks and empty names.
std::vector<std::string> Names(std::string_view list) {
  std::vector<std::string> names;
  for (const std::string& part : base::Split(list, ','))
    if (const auto name = base::Trim(part); !name.empty()) names.emplace_back(name);
  return names;
}

/// The source of a request: the container's creator (annotations, mounts), or the environment,
/// which may come from the image.
enum class Requester { kCreator, kEnvironment };

/// Adds each device once, whatever the source, and refuses devices that the source may not request.
class Collector {
 public:
  Collector(const Config& config, bool privileged, DeviceRequest& request)
      : config_(config), privileged_(privileged), request_(request) {}

  /// Adds "all", an index, a UUID, "g:m", or a qualified name. `where` names the source, for
  /// messages.
  Status Add(std::string_view name, Requester requester, std::string_view where) {
    std::string qualified(name);
    if (const auto parsed = api::cdi::ParseName(name); !parsed) {
      const std::string why =
          name.find('=') != std::string_view::npos
              ? "a qualified name has the form vendor/class=device, such as nvidia.com/gpu=0"
              : api::cdi::WhyNoDeviceName(name);
      if (!why.empty())
        return Error(Code::kInvalidArgument, std::string(where) + " requests " + Shown(name) +
                                                 ", which is not a device name: " + why);
      qualified = config_.default_kind + "=" + std::string(name);
    } else if (parsed->kind == kAutomaticKind) {
      qualified = config_.default_kind + "=" + parsed->device;
    }
    TRY(MayHave(qualified, requester, where));
    return Take(std::move(qualified), where, request_.devices);
  }

  void Optional(std::string_view device) {
    (void)Take(std::string(device), "", request_.optional_devices).ok();
  }

 private:
  /// Privileged containers can open every device anyway.
  Status MayHave(const std::string& device, Requester requester, std::string_view where) const {
    if (privileged_) return {};
    for (const Gate& gate : kMigGates)
      if (device == gate.device)
        return Error(Code::kPermissionDenied,
                     std::string(where) + " requests " + device +
                         ", which is allowed for privileged containers (CAP_SYS_ADMIN) only; "
                         "remove it, or start the container with --privileged");
    if (requester == Requester::kCreator || MayImagesName(device)) return {};
    return Error(Code::kPermissionDenied,
                 std::string(where) + " requests " + Shown(device) +
                     "; the environment of an unprivileged container may " +
                     "name only devices of " + config_.default_kind + " and " +
                     std::string(kImexKind) +
                     ", since images set variables themselves; use --device, a CDI annotation, or "
                     "a mount below " +
                     std::string(kMountRoot) + "cdi/");
  }

  bool MayImagesName(const std::string& device) const {
    const std::string_view kind = std::string_view(device).substr(0, device.find('='));
    return kind == config_.default_kind || kind == kImexKind ||
           std::ranges::any_of(kGates,
                               [&device](const Gate& gate) { return device == gate.device; });
  }

  Status Take(std::string name, std::string_view where, std::vector<std::string>& into) {
    if (!seen_.insert(name).second) return {};
    if (into.size() >= kMaxNames)
      return Error(Code::kResourceExhausted, std::string(where) + " requests more than " +
                                                 std::to_string(kMaxNames) +
                                                 " devices; use \"all\", or name fewer");
    into.push_back(std::move(name));
    return {};
  }

  const Config& config_;
  const bool privileged_;
  DeviceRequest& request_;
  std::set<std::string> seen_;
};

/// "/a//b/./../c" → "/a/c", as engines clean paths; computed from the text alone.
std::string Clean(std::string_view path) {
  std::vector<std::string> parts;
  for (std::string& part : base::Split(path, '/')) {
    if (part == ".." && !parts.empty()) parts.pop_back();
    if (!part.empty() && part != "." && part != "..") parts.push_back(std::move(part));
  }
  return "/" + base::Join(parts, "/");
}

/// The names of mounts of /dev/null below kMountRoot: "all", "0", "cdi/nvidia.com/gpu/0", "imex/1".
std::vector<std::string> MountNames(const RuntimeFacts& facts) {
  std::vector<std::string> names;
  for (const BundleMount& mount : facts.mounts) {
    if (mount.destination.find("nvidia-container-devices") == std::string::npos ||
        Clean(mount.source) != "/dev/null")
      continue;
    const std::string destination = Clean(mount.destination);
    if (destination.starts_with(kMountRoot)) names.push_back(destination.substr(kMountRoot.size()));
  }
  return names;
}

/// "cdi/nvidia.com/gpu/0" and "cdi/nvidia.com/gpu=0" → "nvidia.com/gpu=0".
std::string QualifiedByPath(std::string_view path) {
  path.remove_prefix(4);
  std::string name(path);
  const auto vendor = name.find('/'),
             device = vendor == std::string::npos ? vendor : name.find('/', vendor + 1);
  if (device != std::string::npos) name[device] = '=';
  return name;
}

bool IsImexChannel(std::string_view text) {
  const auto channel = base::ParseUint(text);
  return channel && *channel <= kMaxImexChannel && text == std::to_string(*channel);
}

class Reader {
 public:
  Reader(const RuntimeFacts& facts, const Config& config)
      : facts_(facts), config_(config), collector_(config, facts.privileged, request_) {}

  Result<DeviceRequest> Read() {
    if (config_.accept_mounts) mounts_ = MountNames(facts_);
    TRY(ReadVisible());
    TRY(ReadImexChannels());
    TRY(ReadMig());
    if (!request_.devices.empty() && EnvironmentMayRequest())
      for (const Gate& gate : kGates)
        if (facts_.Get(gate.variable) == "enabled") collector_.Optional(gate.device);
    return std::move(request_);
  }

 private:
  Status ReadVisible() {
    TRY(ReadAnnotations());
    if (request_.by_annotation) return {};
    std::vector<std::string> named;
    for (const std::string& name : mounts_)
      if (!name.starts_with("imex/"))
        named.push_back(name.starts_with("cdi/") ? QualifiedByPath(name) : name);
    if (!named.empty())
      return AddVisible(named, Requester::kCreator, "a mount below " + std::string(kMountRoot));
    return ReadVariables();
  }

  bool RequestsDevices(const std::string& key) const {
    const auto& prefixes = config_.annotation_prefixes;
    return std::ranges::any_of(
        prefixes, [&key](const std::string& prefix) { return key.starts_with(prefix); });
  }

  Status ReadAnnotations() {
    for (const auto& [key, value] : facts_.annotations)
      if (RequestsDevices(key) && !facts_.own_annotations.contains(key))
        request_.remarks.push_back(
            {RuntimeLogLevel::kWarn,
             "the annotation " + Shown(key) +
                 " is ignored: it belongs to the pod, and the kubelet allocates devices to "
                 "containers; request them in resources.limits"});
    for (const auto& [key, value] : facts_.own_annotations) {
      if (!RequestsDevices(key)) continue;
      for (const std::string& name : base::Split(value, ',')) {
        if (!api::cdi::ParseName(name))
          return Error(Code::kInvalidArgument,
                       "the annotation " + Shown(key) + " requests " + Shown(name) +
                           ", which is not a qualified device name such as nvidia.com/gpu=0");
        TRY(collector_.Add(name, Requester::kCreator, "the annotation " + Shown(key)));
        request_.by_annotation = true;
      }
    }
    return {};
  }

  /// If one of swarm-resource's variables is set, they replace NVIDIA_VISIBLE_DEVICES, but not for
  /// docker's `--gpus`, since an image can set such a variable.
  std::vector<std::string> Variables() const {
    std::vector<std::string> set;
    if (facts_.OfDockerGpus()) return {std::string(kVisibleDevices)};
    for (const std::string& name : config_.swarm_resources)
      if (facts_.Has(name)) set.push_back(name);
    if (set.empty()) set.emplace_back(kVisibleDevices);
    return set;
  }

  bool LegacyImage() const {
    return !facts_.Get("CUDA_VERSION").empty() && facts_.Get("NVIDIA_REQUIRE_CUDA").empty();
  }

  Status ReadVariables() {
    const std::vector<std::string> variables = Variables();
    std::vector<std::string> named;
    bool set = false;
    for (const std::string& variable : variables) {
      set = set || facts_.Has(variable);
      for (std::string& name : Names(facts_.Get(variable))) named.push_back(std::move(name));
    }
    if (!set && LegacyImage()) named.emplace_back("all");
    if (named.empty() || std::ranges::find(named, "void") != named.end()) return {};
    const std::string who = base::Join(variables, ", ");
    if (!EnvironmentMayRequest()) {
      if (facts_.OfDockerGpus())
        return Error(Code::kPermissionDenied,
                     "docker's --gpus (" + who + "=" + Shown(facts_.Get(kVisibleDevices)) +
                         ") is refused: " + config_.file + " has " + std::string(kAcceptKey) +
                         " = false, so unprivileged containers cannot request devices by "
                         "environment variables; set it to true, or use a mount: -v /dev/null:" +
                         std::string(kMountRoot) + "0");
      RemarkIgnored(set ? who : "CUDA_VERSION, by which older images request all devices,");
      return {};
    }
    return AddVisible(named, Requester::kEnvironment, who);
  }

  /// By precedence: void, none, all, names.
  Status AddVisible(const std::vector<std::string>& names, Requester requester,
                    const std::string& where) {
    const auto has = [&names](std::string_view word) {
      return std::ranges::find(names, word) != names.end();
    };
    if (has("void")) return {};
    request_.driver = has("none");
    if (request_.driver) return {};
    if (has("all")) return collector_.Add("all", requester, where);
    for (const std::string& name : names) TRY(collector_.Add(name, requester, where));
    return {};
  }

  Status ReadImexChannels() {
    if (!config_.imex_channels) return {};
    std::vector<std::string> channels;
    for (const std::string& name : mounts_)
      if (name.starts_with("imex/")) channels.push_back(name.substr(5));
    std::string where = "a mount below " + std::string(kMountRoot) + "imex";
    const Requester requester = channels.empty() ? Requester::kEnvironment : Requester::kCreator;
    if (requester == Requester::kEnvironment) {
      channels = Names(facts_.Get(kImexChannels));
      where = kImexChannels;
      const auto has = [&channels](std::string_view word) {
        return std::ranges::find(channels, word) != channels.end();
      };
      if (channels.empty() || has("void") || has("none") || has("all")) return {};
      if (!EnvironmentMayRequest()) {
        RemarkIgnored(where);
        return {};
      }
    }
    for (const std::string& channel : channels) {
      if (!IsImexChannel(channel))
        return Error(Code::kInvalidArgument,
                     where + " requests " + Shown(channel) +
                         ", which is not an IMEX channel: a number from 0 to " +
                         std::to_string(kMaxImexChannel));
      TRY(collector_.Add(std::string(kImexKind) + "=" + channel, requester, where));
    }
    return {};
  }

  Status ReadMig() {
    for (const Gate& gate : kMigGates) {
      const std::string_view value = facts_.Get(gate.variable);
      if (value.empty() || value == "void" || value == "none") continue;
      const std::string variable(gate.variable);
      if (value != "all")
        return Error(Code::kInvalidArgument,
                     variable + " is " + Shown(value) + "; only \"all\" is supported");
      TRY(collector_.Add(gate.device, Requester::kEnvironment, variable));
    }
    return {};
  }

  bool EnvironmentMayRequest() const { return runtime::EnvironmentMayRequest(facts_, config_); }

  void RemarkIgnored(std::string_view who) {
    request_.remarks.push_back(IgnoredEnvironment(who, config_));
  }

  const RuntimeFacts& facts_;
  const Config& config_;
  DeviceRequest request_;
  Collector collector_;
  std::vector<std::string> mounts_;
};

}  // namespace

bool IsReplacedHook(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name == "nvidia-container-runtime-hook" || name == "nvidia-container-toolkit";
}

bool EnvironmentMayRequest(const RuntimeFacts& facts, const Config& config) {
  return facts.privileged || config.accept_environment.value_or(!facts.OfKubernetes());
}

Remark IgnoredEnvironment(std::string_view who, const Config& config) {
  std::string text = std::string(who) + " is ignored: the container is not privileged, and ";
  text += config.accept_environment
              ? "config.toml has " + std::string(kAcceptKey) + " = false"
              : "in Kubernetes the kubelet allocates devices; request them in resources.limits, "
                "or set " +
                    std::string(kAcceptKey) + " = true in " + config.file +
                    " to allow every pod the devices that it names";
  return {RuntimeLogLevel::kWarn, std::move(text)};
}

Result<DeviceRequest> ReadRequest(const RuntimeFacts& facts, const Config& config) {
  return Reader(facts, config).Read();
}

}  // namespace penstock::hook::runtime
