// Facts of NVIDIA's driver containers: which paths of the host they use, and where they read files.
#include "operator/driver/driver_volumes.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "api/compat/nvidia/driver_names.h"

namespace penstock::cluster {
namespace {

using Volume = nlohmann::json;

/// Where a distribution has package repositories and certificates.
struct SystemFolders {
  std::string_view os_id, repositories, certificates;
};
constexpr std::array<SystemFolders, 9> kFolders = {
    {{"ubuntu", "/etc/apt/sources.list.d", "/usr/local/share/ca-certificates"},
     {"debian", "/etc/apt/sources.list.d", "/usr/local/share/ca-certificates"},
     {"centos", "/etc/yum.repos.d", "/etc/pki/ca-trust/extracted/pem"},
     {"rhel", "/etc/yum.repos.d", "/etc/pki/ca-trust/extracted/pem"},
     {"rhcos", "/etc/yum.repos.d", "/etc/pki/ca-trust/extracted/pem"},
     {"rocky", "/etc/yum.repos.d", "/etc/pki/ca-trust/extracted/pem"},
     {"ol", "/etc/yum.repos.d", "/etc/pki/ca-trust/extracted/pem"},
     {"sles", "/etc/zypp/repos.d", "/etc/pki/trust/anchors"},
     {"sl-micro", "/etc/zypp/repos.d", "/etc/pki/trust/anchors"}}};

constexpr char kAccessFolder[] = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr int kTokenSeconds = 3607;  // as the API server asks for tokens that it mounts itself

enum MountedIn : unsigned { kInDriver = 1, kInPeer = 2, kInPrepare = 4 };

struct HostMount {
  const char* name;
  const char* host_path;
  const char* type;  ///< of the hostPath; empty: not checked
  const char* path;
  const char* propagation;
  bool read_only;
  unsigned in;
};

constexpr char kOrCreate[] = "DirectoryOrCreate", kToHost[] = "Bidirectional",
               kFromHost[] = "HostToContainer";

constexpr HostMount kHostMounts[] = {
    {"run-nvidia", "/run/nvidia", kOrCreate, "/run/nvidia", kToHost, false,
     kInDriver | kInPeer | kInPrepare},
    {"run-nvidia-fabricmanager", "/run/nvidia-fabricmanager", kOrCreate,
     "/run/nvidia-fabricmanager", "", false, kInDriver},
    {"run-nvidia-topologyd", "/run/nvidia-topologyd", kOrCreate, "/run/nvidia-topologyd", "", false,
     kInDriver},
    {"var-log", "/var/log", "", "/var/log", "", false, kInDriver | kInPeer},
    {"dev-log", "/dev/log", "", "/dev/log", "", false, kInDriver | kInPeer},
    {"host-os-release", "/etc/os-release", "", "/host-etc/os-release", "", true, kInDriver},
    {"run-mellanox-drivers", "/run/mellanox/drivers", kOrCreate, "/run/mellanox/drivers", kFromHost,
     false, kInDriver | kInPeer | kInPrepare},
    {"firmware-search-path", "/sys/module/firmware_class/parameters/path", "",
     "/sys/module/firmware_class/parameters/path", "", false, kInDriver},
    {"sysfs-memory-online", "/sys/devices/system/memory/auto_online_blocks", "",
     "/sys/devices/system/memory/auto_online_blocks", "", false, kInDriver},
    {"host-root", "/", "", "/host", kFromHost, true, kInPrepare},
    {"host-sys", "/sys", "Directory", "/sys", "", false, kInPrepare},
};

Volume HostVolume(const std::string& name, const std::string& path, const std::string& type) {
  Volume volume = {{"name", name}, {"hostPath", {{"path", path}}}};
  if (!type.empty()) volume["hostPath"]["type"] = type;
  return volume;
}

class VolumeList {
 public:
  VolumeList(const api::DriverSpec& driver, const DriverPool& pool,
             const DriverInstallation& installation, std::vector<std::string>& missing)
      : driver_(driver), pool_(pool), installation_(installation), missing_(missing) {}

  DriverVolumes Take() {
    for (const HostMount& one : kHostMounts) AddHost(one);
    all_.volumes.push_back(
        HostVolume("nv-firmware", installation_.driver_root + "/lib/firmware", kOrCreate));
    all_.driver_mounts.push_back({{"name", "nv-firmware"}, {"mountPath", "/lib/firmware"}});
    AddNetworkSources();
    if (!driver_.precompiled) {
      AddSystemFiles("repo-config", driver_.files.repositories, &SystemFolders::repositories);
      AddSystemFiles("cert-config", driver_.files.certificates, &SystemFolders::certificates);
    }
    AddFiles("kernel-module-config", driver_.files.module_options, "/drivers");
    AddLicense();
    AddTopology();
    if (LoadsSafely()) AddAccess();
    return std::move(all_);
  }

 private:
  void AddHost(const HostMount& one) {
    all_.volumes.push_back(HostVolume(one.name, one.host_path, one.type));
    Volume mount = {{"name", one.name}, {"mountPath", one.path}};
    if (*one.propagation != '\0') mount["mountPropagation"] = one.propagation;
    if (one.read_only) mount["readOnly"] = true;
    if ((one.in & kInDriver) != 0) all_.driver_mounts.push_back(mount);
    if ((one.in & kInPeer) != 0) all_.peer_mounts.push_back(mount);
    if ((one.in & kInPrepare) != 0) all_.prepare_mounts.push_back(mount);
  }

  /// Of the network card's driver: the host's own, or that of its driver container.
  void AddNetworkSources() {
    const char* path = driver_.host_network_driver ? "/usr/src" : "/run/mellanox/drivers/usr/src";
    all_.volumes.push_back(HostVolume("mlnx-ofed-usr-src", path, kOrCreate));
    all_.driver_mounts.push_back({{"name", "mlnx-ofed-usr-src"},
                                  {"mountPath", "/run/mellanox/drivers/usr/src"},
                                  {"mountPropagation", kFromHost}});
  }

  void AddSystemFiles(const char* volume, const std::string& map,
                      std::string_view SystemFolders::*folder) {
    if (map.empty()) return;
    for (const SystemFolders& one : kFolders)
      if (one.os_id == pool_.os_id) return AddFiles(volume, map, std::string(one.*folder));
    missing_.push_back("where " + pool_.os_id + " has the files of ConfigMap " + map +
                       " is not known");
  }

  /// Each key as a file of its own, so that the files beside it stay.
  void AddFiles(const char* volume, const std::string& map, const std::string& folder) {
    if (map.empty()) return;
    const auto keys = installation_.config_maps.find(map);
    if (keys == installation_.config_maps.end()) {
      missing_.push_back("ConfigMap " + map + " is not in namespace " +
                         installation_.namespace_name);
      return;
    }
    all_.volumes.push_back({{"name", volume}, {"configMap", {{"name", map}}}});
    for (const std::string& key : keys->second) AddFile(volume, folder + "/" + key, key);
  }

  void AddFile(const std::string& volume, const std::string& path, const std::string& key) {
    all_.driver_mounts.push_back(
        {{"name", volume}, {"mountPath", path}, {"subPath", key}, {"readOnly", true}});
  }

  void AddLicense() {
    const api::DriverFiles& files = driver_.files;
    if (files.license_secret.empty() && files.license_map.empty()) return;
    Volume items = Volume::array({{{"key", "gridd.conf"}, {"path", "gridd.conf"}}});
    AddFile("licensing-config", "/drivers/gridd.conf", "gridd.conf");
    if (files.license_token) {
      const char* token = "client_configuration_token.tok";
      items.push_back({{"key", token}, {"path", token}});
      AddFile("licensing-config", std::string("/drivers/ClientConfigToken/") + token, token);
    }
    Volume volume = {{"name", "licensing-config"}};
    if (files.license_secret.empty()) {
      volume["configMap"] = {{"name", files.license_map}, {"items", items}};
    } else {
      volume["secret"] = {{"secretName", files.license_secret}, {"items", items}};
    }
    all_.volumes.push_back(std::move(volume));
  }

  void AddTopology() {
    if (driver_.files.topology.empty()) return;
    const char* file = "nvidia-topologyd.conf";
    Volume items = Volume::array({{{"key", file}, {"path", file}}});
    all_.volumes.push_back({{"name", "topology-config"},
                            {"configMap", {{"name", driver_.files.topology}, {"items", items}}}});
    AddFile("topology-config", std::string("/etc/nvidia/") + file, file);
  }

  bool LoadsSafely() const {
    return std::ranges::any_of(driver_.prepare_environment, [](const auto& variable) {
      return variable.first == api::compat::kSafeLoadVariable && !variable.second.empty() &&
             variable.second != "false";
    });
  }

  /// To the API server, for the init container alone, which annotates its Node: what Kubernetes
  /// mounts for a service account otherwise.
  void AddAccess() {
    const Volume certificate = {
        {"configMap",
         {{"name", "kube-root-ca.crt"},
          {"items", Volume::array({{{"key", "ca.crt"}, {"path", "ca.crt"}}})}}}};
    const Volume name_space = {
        {"downwardAPI",
         {{"items", Volume::array({{{"path", "namespace"},
                                    {"fieldRef", {{"fieldPath", "metadata.namespace"}}}}})}}}};
    const Volume token = {
        {"serviceAccountToken", {{"path", "token"}, {"expirationSeconds", kTokenSeconds}}}};
    all_.volumes.push_back(
        {{"name", "api-access"},
         {"projected", {{"sources", Volume::array({token, certificate, name_space})}}}});
    all_.prepare_mounts.push_back(
        {{"name", "api-access"}, {"mountPath", kAccessFolder}, {"readOnly", true}});
  }

  const api::DriverSpec& driver_;
  const DriverPool& pool_;
  const DriverInstallation& installation_;
  std::vector<std::string>& missing_;
  DriverVolumes all_;
};

}  // namespace

DriverVolumes VolumesOf(const api::DriverSpec& driver, const DriverPool& pool,
                        const DriverInstallation& installation, std::vector<std::string>& missing) {
  return VolumeList(driver, pool, installation, missing).Take();
}

}  // namespace penstock::cluster
