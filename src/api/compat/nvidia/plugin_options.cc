// The table of the names of the device plugin's and GPU Feature Discovery's settings: flags,
// environment variables, keys.
#include "api/compat/nvidia/device_plugin.h"

namespace penstock::api::compat {
namespace {

using Names = std::vector<std::string_view>;

PluginOption Text(Names flags, Names environment, std::string_view key, std::string_view help) {
  return {std::move(flags), std::move(environment), key, help};
}

PluginOption OnOff(Names flags, Names environment, std::string_view key, std::string_view help) {
  return {std::move(flags), std::move(environment), key, help, true};
}

}  // namespace

const std::vector<PluginOption>& PluginOptions() {
  static const std::vector<PluginOption> options = {
      Text({"--mig-strategy"}, {"MIG_STRATEGY", "GFD_MIG_STRATEGY"}, "flags.migStrategy",
           "none, single or mixed"),
      OnOff({"--fail-on-init-error"}, {"FAIL_ON_INIT_ERROR", "GFD_FAIL_ON_INIT_ERROR"},
            "flags.failOnInitError", "accepted; the agent always serves the healthy devices"),
      Text({"--nvidia-driver-root"}, {"NVIDIA_DRIVER_ROOT"}, "flags.nvidiaDriverRoot",
           "path of the driver root on the host"),
      Text({"--nvidia-dev-root"}, {"NVIDIA_DEV_ROOT"}, "flags.nvidiaDevRoot",
           "path on the host of the folder that contains dev/"),
      OnOff({"--pass-device-specs"}, {"PASS_DEVICE_SPECS"}, "flags.plugin.passDeviceSpecs",
            "pass device files to containers, also if CDI injects them"),
      Text(
          {"--device-list-strategy"}, {"DEVICE_LIST_STRATEGY"}, "flags.plugin.deviceListStrategy",
          "how devices are passed to a container: envvar, volume-mounts, cdi-annotations, cdi-cri; "
          "one or more, comma-separated"),
      Text({"--device-id-strategy"}, {"DEVICE_ID_STRATEGY"}, "flags.plugin.deviceIDStrategy",
           "name devices by uuid or index"),
      OnOff({"--gdrcopy-enabled"}, {"GDRCOPY_ENABLED"}, "flags.gdrcopyEnabled",
            "GDRCopy in containers"),
      OnOff({"--gds-enabled"}, {"GDS_ENABLED"}, "flags.gdsEnabled",
            "GPUDirect Storage in containers"),
      OnOff({"--mofed-enabled"}, {"MOFED_ENABLED"}, "flags.mofedEnabled", "MOFED in containers"),
      Text({"--cdi-annotation-prefix"}, {"CDI_ANNOTATION_PREFIX"},
           "flags.plugin.cdiAnnotationPrefix", "prefix of annotations that name CDI devices"),
      Text({"--nvidia-cdi-hook-path", "--nvidia-ctk-path"},
           {"NVIDIA_CDI_HOOK_PATH", "NVIDIA_CTK_PATH"}, "flags.plugin.nvidiaCTKPath",
           "the program that CDI hooks run"),
      Text({"--driver-root-ctr-path", "--container-driver-root"},
           {"DRIVER_ROOT_CTR_PATH", "CONTAINER_DRIVER_ROOT"}, "flags.plugin.containerDriverRoot",
           "driver root as seen by the agent; same as --driver-root"),
      Text({"--mps-root"}, {"MPS_ROOT"}, "flags.mpsRoot",
           "folder of MPS pipes and logs on the host"),
      Text({"--shared-devices-allocation-policy"}, {"SHARED_DEVICES_ALLOCATION_POLICY"},
           "flags.plugin.sharedDevicesAllocationPolicy", "distributed or packed"),
      Text({"--device-discovery-strategy"}, {"DEVICE_DISCOVERY_STRATEGY"},
           "flags.deviceDiscoveryStrategy", "auto, nvml, tegra or vfio"),
      Text({"--imex-channel-ids"}, {"IMEX_CHANNEL_IDS"}, "imex.channelIDs",
           "IMEX channels in containers: none or 0"),
      OnOff({"--imex-required"}, {"IMEX_REQUIRED"}, "imex.required",
            "whether a missing IMEX channel is an error"),
      Text({"--kubelet-socket"}, {"KUBELET_SOCKET"}, "",
           "the kubelet's registration socket; empty: the device plugin is disabled"),
      Text({"--config-file"}, {"CONFIG_FILE", "GFD_CONFIG_FILE"}, "", "same as --config"),
      Text({"--cdi-feature-flags"}, {"CDI_FEATURE_FLAGS"}, "",
           "feature flags of CDI specifications"),
      Text({"--cdi-disable-hooks"}, {"CDI_DISABLE_HOOKS"}, "",
           "hooks to omit from CDI specifications"),
      OnOff({"--use-node-feature-api"}, {"USE_NODE_FEATURE_API", "GFD_USE_NODE_FEATURE_API"},
            "flags.useNodeFeatureAPI", "publish labels as NFD's NodeFeature object"),
      OnOff({"--oneshot"}, {"GFD_ONESHOT"}, "flags.gfd.oneshot",
            "accepted; the agent keeps running"),
      OnOff({"--no-timestamp"}, {"GFD_NO_TIMESTAMP"}, "flags.gfd.noTimestamp",
            "omit the label nvidia.com/gfd.timestamp"),
      Text({"--sleep-interval"}, {"GFD_SLEEP_INTERVAL"}, "flags.gfd.sleepInterval",
           "accepted; labels are updated when needed"),
      Text({"--output-file", "--output"}, {"GFD_OUTPUT_FILE"}, "flags.gfd.outputFile",
           "write labels to a file that NFD's worker reads"),
      Text({"--machine-type-file"}, {"GFD_MACHINE_TYPE_FILE"}, "flags.gfd.machineTypeFile",
           "file with the machine's product name"),
      Text({"--node-name"}, {"NODE_NAME"}, "", "name of this node"),
      Text({}, {"DP_DISABLE_HEALTHCHECKS"}, "", "XIDs to ignore, or all"),
      Text({}, {"DP_ENABLE_HEALTHCHECKS"}, "", "XIDs to count although they are disabled, or all"),
  };
  return options;
}

}  // namespace penstock::api::compat
