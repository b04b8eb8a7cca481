// Requires two observations: the kubelet counts devices, and a process answers.
#include "protocol/kubelet/other_plugin.h"

#include <algorithm>
#include <utility>

#include <sys/stat.h>

#include "base/core/printable.h"
#include "base/core/strings.h"
#include "deviceplugin.grpc.pb.h"
#include "os/core/file.h"
#include "protocol/kubelet/pod_resources.h"
#include "protocol/rpc/calls.h"
#include "protocol/rpc/peer.h"

namespace penstock::protocol::kubelet {
namespace {

constexpr char kKubeletSocket[] = "kubelet.sock";

bool IsSocket(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
}

/// Whether a socket is named after the resource: "nvidia-gpu.sock" for "nvidia.com/gpu". Plugins
/// made with kubevirt's device-plugin-manager, as AMD's, have "amd.com_gpu" for "amd.com/gpu"
/// (newDevicePlugin in its pkg/dpm/plugin.go).
bool NamedAfter(const std::string& socket, const std::string& resource) {
  const auto slash = resource.find('/');
  if (slash == std::string::npos) return false;
  const std::string domain = resource.substr(0, slash), name = resource.substr(slash + 1);
  const std::string vendor = domain.substr(0, domain.find('.'));
  return socket == domain + "_" + name || socket == domain + "_" + name + ".sock" ||
         socket == vendor + "-" + name + ".sock" || socket == vendor + "_" + name + ".sock";
}

}  // namespace

PluginSocket ProbeSocket(const std::string& folder, const std::string& name,
                         const std::string& proc_root) {
  const rpc::PeerIdentity peer = rpc::PeerOf(folder + "/" + name);
  struct stat of_folder {};
  // Of the process, not of the file, which a user who can write the folder may have linked there.
  const bool trusted =
      peer.uid == 0 || (::stat(folder.c_str(), &of_folder) == 0 && peer.uid == of_folder.st_uid);
  PluginSocket found{name, peer.alive, peer.pid, "", trusted};
  if (peer.pid <= 0) return found;
  const auto comm = os::ReadFile(proc_root + "/" + std::to_string(peer.pid) + "/comm", 4096);
  if (comm.ok()) found.process = std::string(base::Trim(*comm));
  return found;
}

std::vector<PluginSocket> ListPluginSockets(const std::string& folder,
                                            const std::string& proc_root) {
  std::vector<PluginSocket> sockets;
  const auto names = os::ListDirectory(folder);
  if (!names.ok()) return sockets;
  for (const auto& name : *names) {
    if (name == kKubeletSocket || !IsSocket(std::string(folder).append("/").append(name))) continue;
    sockets.push_back(ProbeSocket(folder, name, proc_root));
  }
  return sockets;
}

std::string OtherPlugin::Describe() const {
  std::vector<std::string> names;
  for (const auto& suspect : suspects) {
    std::string name = base::Printable(suspect.name);
    if (suspect.pid > 0) {
      name += " (" + (suspect.process.empty() ? "" : base::Printable(suspect.process) + ", ") +
              "pid " + std::to_string(suspect.pid) + ")";
    }
    names.push_back(std::move(name));
  }
  return base::Join(names, " or ");
}

OtherPlugin NameOther(std::vector<PluginSocket> suspects, std::vector<std::string> ids,
                      const std::string& resource) {
  const auto named = std::ranges::find_if(suspects, [&resource](const auto& one) {
    return one.trusted && NamedAfter(one.name, resource);
  });
  const bool certain = named != suspects.end();
  if (certain) suspects = {*named};
  std::ranges::sort(suspects,
                    [](const auto& one, const auto& other) { return one.name < other.name; });
  return {std::move(suspects), std::move(ids), certain};
}

struct OtherPlugins::Impl {
  Impl(base::Executor& executor, Options its_options)
      : options(std::move(its_options)),
        calls(executor),
        pod_resources(executor, options.kubelet_dir, options.kubelet_within) {}

  /// One search: which sockets answer, then what the kubelet counts.
  struct Search {
    std::vector<PluginSocket> suspects;
    std::size_t pending = 0;
    std::function<void(std::optional<OtherPlugin>)> done;
  };

  void Query(const std::shared_ptr<Search>& search, const PluginSocket& socket);
  void Answered(const std::shared_ptr<Search>& search);

  const Options options;
  rpc::Calls calls;
  PodResources pod_resources;
};

OtherPlugins::OtherPlugins(base::Executor& executor, Options options)
    : impl_(std::make_unique<Impl>(executor, std::move(options))) {}

OtherPlugins::~OtherPlugins() = default;

void OtherPlugins::Detect(std::function<void(std::optional<OtherPlugin>)> done) {
  auto sockets =
      ListPluginSockets(impl_->options.kubelet_dir + "/device-plugins", impl_->options.proc_root);
  std::erase_if(sockets, [this](const auto& socket) {
    return !socket.alive || socket.name.starts_with(impl_->options.own_prefix);
  });
  if (sockets.empty()) return done(std::nullopt);
  auto search = std::make_shared<Impl::Search>();
  search->done = std::move(done);
  search->pending = sockets.size();
  for (const auto& socket : sockets) impl_->Query(search, socket);
}

void OtherPlugins::Impl::Query(const std::shared_ptr<Search>& search, const PluginSocket& socket) {
  calls.Call<v1beta1::DevicePlugin, v1beta1::DevicePluginOptions>(
      options.kubelet_dir + "/device-plugins/" + socket.name, v1beta1::Empty(),
      options.answer_within,
      [](auto* stub, auto* context, const auto* request, auto* response, auto finished) {
        stub->GetDevicePluginOptions(context, request, response,
                                     std::function<void(grpc::Status)>(std::move(finished)));
      },
      [this, search, socket](const base::Result<v1beta1::DevicePluginOptions>& answer) {
        if (answer.ok()) search->suspects.push_back(socket);
        if (--search->pending == 0) Answered(search);
      });
}

void OtherPlugins::Impl::Answered(const std::shared_ptr<Search>& search) {
  if (search->suspects.empty()) return search->done(std::nullopt);
  pod_resources.GetAllocatable([this, search](const auto& allocatable) {
    if (!allocatable.ok()) return search->done(std::nullopt);
    const auto found = allocatable->find(options.resource);
    if (found == allocatable->end() || found->second.empty()) return search->done(std::nullopt);
    search->done(NameOther(search->suspects, found->second, options.resource));
  });
}

}  // namespace penstock::protocol::kubelet
