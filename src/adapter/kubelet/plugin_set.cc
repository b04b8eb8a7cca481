// A plugin must not be destroyed inside its own callbacks, so plugins are always ended from the
// loop.
#include "adapter/kubelet/plugin_set.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/lifetime.h"
#include "base/log.h"
#include "protocol/kubelet/pod_resources.h"

namespace penstock::adapter::kubelet {

using protocol::kubelet::DevicePlugin;
using protocol::kubelet::PluginDevice;
using protocol::kubelet::PluginState;

namespace {

constexpr char kOurPrefix[] = "penstock-";
// 107 bytes less the kubelet's folder, our prefix and the unique suffix.
constexpr std::size_t kMaxNameLength = 40;
constexpr base::Duration kInitialRetry = std::chrono::milliseconds(20);
constexpr base::Duration kMaxRetry = std::chrono::seconds(5);

/// FNV-1a: the same in every version of the agent.
std::string Digest(const std::string& text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  std::array<char, 9> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), hash, 16).ptr;
  return {digits.data(), end};
}

/// Whether the kubelet may read this plugin's list now or soon.
bool MayBeRead(const PluginState& state) {
  return state.phase == PluginState::Phase::kServing ||
         state.phase == PluginState::Phase::kRegistering;
}

}  // namespace

std::string SocketPrefixOf(const std::string& resource) {
  std::string name = resource;
  std::replace(name.begin(), name.end(), '/', '-');
  if (name.size() > kMaxNameLength) {
    const std::string digest = Digest(resource);
    name = name.substr(0, kMaxNameLength - digest.size() - 1) + "-" + digest;
  }
  return kOurPrefix + name;
}

struct PluginSet::State : std::enable_shared_from_this<State> {
  struct Plugin {
    std::unique_ptr<DevicePlugin> plugin;
    bool leaving = false;
    bool taken = false;            // the kubelet counts none of its devices as healthy
    base::TimePoint read_by = {};  // by then the kubelet has read the empty list
  };

  State(os::Loop& l, Options o, protocol::kubelet::PluginHandler& h, PluginSet::StateChanged c)
      : loop(l),
        options(std::move(o)),
        handler(h),
        state_changed(std::move(c)),
        resources(l, options.kubelet_dir) {}

  void Offer(std::map<std::string, std::vector<PluginDevice>>&& lists) {
    bool some_leave = false;
    for (auto& [resource, one] : plugins) {
      if (lists.contains(resource)) continue;
      if (!one.leaving) {
        base::Log(base::kInfo, "resource no longer advertised to the kubelet",
                  {{"resource", resource}});
        one.plugin->Update({});
        one.leaving = some_leave = true;
        one.taken = false;
        one.read_by = loop.clock().Now() + options.read_within;
      }
    }
    for (auto& [resource, list] : lists) {
      Plugin* one = Find(resource);
      if (one == nullptr) continue;
      one->leaving = false;
      one->plugin->Update(std::move(list));
    }
    if (!some_leave) return;
    retry_delay = kInitialRetry;
    ScheduleQuery();
  }

  Plugin* Find(const std::string& resource) {
    if (const auto found = plugins.find(resource); found != plugins.end()) return &found->second;
    auto plugin = DevicePlugin::Create(
        loop,
        {.kubelet_dir = options.kubelet_dir,
         .resource = resource,
         .socket_prefix = SocketPrefixOf(resource),
         .own_prefix = kOurPrefix,
         .proc_root = options.proc_root},
        handler, [this, resource](const PluginState& state) { Changed(resource, state); });
    if (!plugin.ok()) {
      base::Log(base::kError, "cannot start the device plugin",
                {{"resource", resource}, {"why", plugin.error().message()}});
      return nullptr;
    }
    return &plugins.emplace(resource, Plugin{*std::move(plugin)}).first->second;
  }

  void Changed(const std::string& resource, const PluginState& state) {
    state_changed(resource, state);
    ScheduleCheck();
  }

  void ScheduleCheck() {
    if (AnyLeaving()) loop.Post(base::IfAlive(this, &State::CheckLeaving));
  }

  void CheckLeaving() {
    for (auto one = plugins.begin(); one != plugins.end();) {
      if (!one->second.leaving ||
          (MayBeRead(one->second.plugin->state()) && !HasRead(one->second))) {
        ++one;
        continue;
      }
      base::Log(base::kInfo, "device plugin state changed",
                {{"resource", one->first}, {"state", "ended"}});
      one = plugins.erase(one);
    }
  }

  /// Whether the kubelet has the empty list: it says which devices it counts as healthy, but not
  /// whether it has read that unhealthy ones are gone.
  bool HasRead(const Plugin& one) const { return one.taken && loop.clock().Now() >= one.read_by; }

  bool AnyLeaving() const {
    return std::ranges::any_of(plugins, [](const auto& one) { return one.second.leaving; });
  }

  void ScheduleQuery() {
    loop.Cancel(timer);
    timer = loop.PostAfter(retry_delay, base::IfAlive(this, &State::Query));
    retry_delay = std::min(retry_delay * 2, kMaxRetry);
  }

  /// Repeats the question if the kubelet does not answer: it may be a new one, which never had the
  /// longer list.
  void Query() {
    CheckLeaving();
    if (!AnyLeaving()) return;
    resources.GetAllocatable(base::IfAlive(this, [](State& self, const auto& answer) {
      if (answer.ok())
        for (auto& [resource, one] : self.plugins)
          if (const auto found = answer->find(resource);
              found == answer->end() || found->second.empty())
            one.taken = one.leaving;
      self.CheckLeaving();
      if (self.AnyLeaving()) self.ScheduleQuery();
    }));
  }

  os::Loop& loop;
  const Options options;
  protocol::kubelet::PluginHandler& handler;
  const PluginSet::StateChanged state_changed;
  protocol::kubelet::PodResources resources;
  std::map<std::string, Plugin> plugins;
  base::Duration retry_delay = kInitialRetry;
  base::TimerId timer = 0;
};

PluginSet::PluginSet(os::Loop& loop, Options options, protocol::kubelet::PluginHandler& handler,
                     StateChanged state_changed)
    : state_(std::make_shared<State>(loop, std::move(options), handler, std::move(state_changed))) {
}

PluginSet::~PluginSet() { state_->loop.Cancel(state_->timer); }

void PluginSet::Offer(std::map<std::string, std::vector<PluginDevice>> lists) {
  state_->Offer(std::move(lists));
}

std::map<std::string, PluginState> PluginSet::states() const {
  std::map<std::string, PluginState> states;
  for (const auto& [resource, one] : state_->plugins) states[resource] = one.plugin->state();
  return states;
}

}  // namespace penstock::adapter::kubelet
