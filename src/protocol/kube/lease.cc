// Alternates between attempts: read and acquire the lease, or renew our own. A leader that cannot
// renew in time stops before others may begin.
#include "protocol/kube/lease.h"

#include <algorithm>
#include <random>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/core/json_text.h"

namespace penstock::protocol::kube {

using base::Duration;
using base::TimePoint;
using namespace std::chrono_literals;

namespace {

const Resource kLeases{"coordination.k8s.io", "v1", "leases"};
constexpr const char* kManager = "penstock";

// RFC 3339 with microseconds, like metav1.MicroTime.
std::string MicroTime(base::WallTime time) {
  std::string text = base::FormatTime(time);
  text.insert(text.size() - 1, "000");
  return text;
}

std::string HolderOf(const Json& lease) {
  const Json holder = lease.value("/spec/holderIdentity"_json_pointer, Json());
  return holder.is_string() ? holder.get<std::string>() : "";
}

std::int64_t NumberOf(const Json& lease, const char* pointer, std::int64_t otherwise) {
  const Json number = lease.value(Json::json_pointer(pointer), Json());
  return number.is_number_integer() ? number.get<std::int64_t>() : otherwise;
}

bool IsLease(const Json& object) {
  const auto spec = object.is_object() ? object.find("spec") : object.end();
  return object.is_object() && (spec == object.end() || spec->is_object()) &&
         object.contains("metadata") && object["metadata"].is_object();
}

}  // namespace

struct LeaderElection::State : std::enable_shared_from_this<State> {
  State(Api& its_api, Options its_options, Callbacks its_callbacks)
      : api(its_api), options(std::move(its_options)), callbacks(std::move(its_callbacks)) {}

  TimePoint Now() const { return api.executor().clock().Now(); }
  std::string Path() const { return kLeases.Path(options.namespace_name, options.name); }

  void Send(ApiCall call, void (State::*then)(const base::Result<ApiResponse>&)) {
    call.deadline = std::max<Duration>(1s, options.renew_within / 2);
    sent = Now();
    api.Do(std::move(call), [weak = weak_from_this(), then](base::Result<ApiResponse> answer) {
      if (const auto state = weak.lock(); state && !state->ended) (state.get()->*then)(answer);
    });
  }

  void Later(Duration delay) {
    timer = api.executor().PostAfter(delay, [weak = weak_from_this()] {
      if (const auto state = weak.lock(); state && !state->ended) state->Try();
    });
  }

  // Waiting candidates retry at random times, so that they do not collide.
  void Again() {
    const double factor = leads ? 1
                                : 1 + std::uniform_real_distribution<double>(
                                          0, 1.2)(random);  // client-go: JitterFactor
    Later(std::chrono::duration_cast<Duration>(options.retry * factor));
  }

  void Try() {
    if (leads && !reading) return Write(Renewed());
    Send(Get(kLeases, options.namespace_name, options.name), &State::OnRead);
  }

  void OnRead(const base::Result<ApiResponse>& answer) {
    if (!answer.ok() && answer.error().code() == Code::kNotFound) {
      Json lease = {{"apiVersion", "coordination.k8s.io/v1"},
                    {"kind", "Lease"},
                    {"metadata", {{"name", options.name}}}};
      Hold(lease, 0);
      return Send(Create(kLeases, options.namespace_name, lease, kManager), &State::OnWritten);
    }
    const auto lease = Parse(answer);
    if (!lease.ok() || !IsLease(*lease)) return OnFailure();
    Observe(*lease);
    const std::string holder = HolderOf(*lease);
    if (leads && holder != options.identity)
      Stop("the lease was taken; its holder: " + (holder.empty() ? "none" : holder));
    if (ended) return;
    if (!holder.empty() && holder != options.identity && Now() < observed_at + DurationOf(*lease))
      return Again();
    if (holder == options.identity) return Write(Renewed());
    Json taken = *lease;
    Hold(taken, NumberOf(taken, "/spec/leaseTransitions", 0) + 1);
    Write(taken);
  }

  Duration DurationOf(const Json& lease) const {
    constexpr std::int64_t kMax = 86'400;
    return std::chrono::seconds(std::clamp<std::int64_t>(
        NumberOf(lease, "/spec/leaseDurationSeconds",
                 std::chrono::duration_cast<std::chrono::seconds>(options.lease).count()),
        1, kMax));
  }

  // An observed renewal counts from now, whatever time is written in it.
  void Observe(const Json& lease) {
    if (observed && *observed == lease) return;
    observed = std::make_shared<const Json>(lease);
    observed_at = Now();
  }

  void Hold(Json& lease, std::int64_t transitions) const {
    const std::string now = MicroTime(api.executor().clock().Wall());
    lease["spec"] = {{"holderIdentity", options.identity},
                     {"leaseDurationSeconds",
                      std::chrono::duration_cast<std::chrono::seconds>(options.lease).count()},
                     {"acquireTime", now},
                     {"renewTime", now},
                     {"leaseTransitions", transitions}};
  }

  Json Renewed() const {
    Json lease = *observed;
    lease["spec"]["renewTime"] = MicroTime(api.executor().clock().Wall());
    return lease;
  }

  ApiCall Put(const Json& lease) const {
    return {.method = "PUT",
            .path = Path(),
            .query = {{"fieldManager", kManager}},
            .content_type = "application/json",
            .body = base::JsonText(lease)};
  }

  void Write(const Json& lease) { Send(Put(lease), &State::OnWritten); }

  void OnWritten(const base::Result<ApiResponse>& answer) {
    const auto lease = Parse(answer);
    if (!lease.ok() || !IsLease(*lease)) return OnFailure();
    Observe(*lease);
    if (HolderOf(*lease) != options.identity) return OnFailure();
    renewed = sent;
    reading = false;
    const bool begins = !std::exchange(leads, true);
    Again();
    WatchTheTime();
    if (begins && callbacks.leading) callbacks.leading();
  }

  // The clock determines when to stop, also during a call.
  void WatchTheTime() {
    api.executor().Cancel(time_is_up);
    time_is_up =
        api.executor().PostAfter(renewed + options.renew_within - Now(), [weak = weak_from_this()] {
          if (const auto state = weak.lock(); state && !state->ended && state->leads)
            state->Stop("the lease could not be renewed within " +
                        base::FormatDuration(state->options.renew_within));
        });
  }

  // If our version of the lease is outdated, the lease is read before the next write.
  void OnFailure() {
    if (leads && !reading) {
      reading = true;
      return Later(options.retry / 4);
    }
    Again();
  }

  void Stop(const std::string& why) {
    leads = false;
    api.executor().Cancel(time_is_up);
    if (callbacks.stopped) callbacks.stopped(why);
  }

  void Release() {
    Json lease = *observed;
    lease["spec"]["holderIdentity"] = "";
    lease["spec"]["leaseDurationSeconds"] = 1;
    api.Do(Put(lease), [](const base::Result<ApiResponse>&) {});
  }

  Api& api;
  const Options options;
  const Callbacks callbacks;
  std::minstd_rand random{std::random_device{}()};
  std::shared_ptr<const Json> observed;
  TimePoint observed_at, renewed, sent;
  base::TimerId timer = 0, time_is_up = 0;
  bool leads = false, reading = false, started = false, ended = false;
};

LeaderElection::LeaderElection(Api& api, Options options, Callbacks callbacks)
    : state_(std::make_shared<State>(api, std::move(options), std::move(callbacks))) {}

LeaderElection::~LeaderElection() {
  state_->ended = true;
  state_->api.executor().Cancel(state_->timer);
  state_->api.executor().Cancel(state_->time_is_up);
  if (state_->leads) state_->Release();
}

void LeaderElection::Start() {
  if (!std::exchange(state_->started, true)) state_->Later({});
}

bool LeaderElection::leads() const { return state_->leads; }

}  // namespace penstock::protocol::kube
