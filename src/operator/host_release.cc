#include "operator/host_release.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/core/strings.h"
#include "operator/fleet_state.h"
#include "operator/names.h"
#include "operator/pod_troubles.h"

namespace penstock::cluster {

using namespace std::chrono_literals;

namespace {

/// A node that does not respond holds a deletion for as long as its agent's pod does.
constexpr base::Duration kTakes = 1min;
/// A server that starts, or has not seen what was deleted before, refuses it at first.
constexpr base::Duration kRefusedAtFirst = 10s;

}  // namespace

struct HostRelease::State {
  State(protocol::kube::Api& a, std::string namespace_name, Callbacks c)
      : api(a),
        callbacks(std::move(c)),
        pods(api, std::move(namespace_name), std::string(kHostReleaseName),
             {.changed = callbacks.changed,
              .due_after = callbacks.due_after,
              .problem = callbacks.problem}) {}

  void Begin(std::vector<WantedObject> them) {
    objects = std::move(them);
    since = api.executor().clock().Now();
    needed = !objects.empty();
    pods.Read(needed);
  }

  bool Look(const Json* daemon_set, bool is_refused, std::optional<std::int64_t> nodes) {
    if (!since || over) return false;
    if (!needed) {
      End();
      return true;
    }
    const AgentsState found = AgentsOf(daemon_set);
    ready = found.ready;
    if (!nodes_first) nodes_first = nodes;
    const std::int64_t gone = nodes ? std::max(*nodes_first - *nodes, std::int64_t{0}) : 0;
    // A node that is not ready any more may have had an agent.
    of = std::max(found.desired, agents.value_or(0) - gone);
    const bool is_complete = found.complete() && ready >= of;
    const base::Duration patience = kTakes + kPodTakes * of;
    const base::Duration left = *since + patience - api.executor().clock().Now();
    // A namespace that is being deleted takes no pods.
    const bool is_in_vain =
        daemon_set == nullptr && is_refused && left < patience - kRefusedAtFirst;
    if (!is_complete && !is_in_vain && left > 0s) {
      callbacks.due_after(std::min(left, kRefusedAtFirst));
      return false;
    }
    complete = is_complete;
    if (!complete) why_not = Troubles();
    End();
    return true;
  }

  void End() {
    over = true;
    objects.clear();
    pods.Read(false);
  }

  /// "n3: cleanup: Error", of at most so many nodes.
  std::string Troubles() const {
    std::vector<std::string> troubles = pods.troubles();
    if (troubles.size() > kMostNamed) troubles.resize(kMostNamed);
    return base::Join(troubles, ", ");
  }

  std::string Nodes() const {
    return "what agents left on the hosts of " + std::to_string(ready) + " of " +
           std::to_string(of) + " nodes";
  }

  protocol::kube::Api& api;
  const Callbacks callbacks;
  PodTroubles pods;
  bool wanted = false, over = false;
  bool needed = false;    // there was something to do
  bool complete = false;  // and it was done everywhere
  std::vector<WantedObject> objects;
  std::optional<base::TimePoint> since;
  std::optional<std::int64_t> agents;       // nodes that had one when it began
  std::optional<std::int64_t> nodes_first;  // of the cluster, when they were known first
  std::int64_t ready = 0, of = 0;           // nodes
  std::string why_not;
};

HostRelease::HostRelease(protocol::kube::Api& api, std::string namespace_name, Callbacks callbacks)
    : state_(std::make_shared<State>(api, std::move(namespace_name), std::move(callbacks))) {}

HostRelease::~HostRelease() = default;

void HostRelease::Want(std::optional<std::int64_t> agents) {
  state_->wanted = true;
  if (!state_->agents && !begun()) state_->agents = agents;
}

void HostRelease::Forget() {
  State& state = *state_;
  state.End();
  state.wanted = state.over = state.needed = state.complete = false;
  state.since.reset();
  state.agents.reset();
  state.nodes_first.reset();
  state.ready = state.of = 0;
  state.why_not.clear();
}

bool HostRelease::wanted() const { return state_->wanted; }
void HostRelease::Begin(std::vector<WantedObject> objects) { state_->Begin(std::move(objects)); }
bool HostRelease::begun() const { return state_->since.has_value(); }
const std::vector<WantedObject>& HostRelease::objects() const { return state_->objects; }
bool HostRelease::Look(const nlohmann::json* daemon_set, bool is_refused,
                       std::optional<std::int64_t> nodes) {
  return state_->Look(daemon_set, is_refused, nodes);
}
bool HostRelease::over() const { return state_->over; }

std::string HostRelease::left() const {
  const State& state = *state_;
  if (!begun() || state.over) return "";
  const std::string troubles = state.Troubles();
  return state.Nodes() + (troubles.empty() ? "" : ": " + troubles);
}

std::string HostRelease::taken_back() const {
  const State& state = *state_;
  if (!state.over || !state.needed) return "";
  if (!has_given_up()) return state.Nodes();
  return state.Nodes() + " (" + (state.why_not.empty() ? "" : state.why_not + "; ") +
         "`penstock cleanup --host --keep-state` takes it back on a node, and `kubectl penstock "
         "cleanup --node NODE` what an agent that still runs there writes)";
}

bool HostRelease::has_given_up() const {
  const State& state = *state_;
  return state.over && state.needed && !state.complete && (state.of > 0 || !state.agents);
}

}  // namespace penstock::cluster
