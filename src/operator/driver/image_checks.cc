#include "operator/driver/image_checks.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/lifetime.h"
#include "base/log.h"
#include "operator/json_values.h"
#include "operator/names.h"
#include "protocol/kube/informer.h"

namespace penstock::cluster {

using protocol::kube::ApiResponse;
using protocol::kube::Informer;
using namespace std::chrono_literals;

namespace {

constexpr base::Duration kPatience = 30min;  // an image has gigabytes
constexpr base::Duration kNextTry = 1min, kBetween = 5s;
constexpr std::size_t kMostPods = 20, kMostUnanswered = 4;
const protocol::kube::Resource kCheckPods{"", "v1", "pods"};

}  // namespace

struct ImageChecks::State : std::enable_shared_from_this<State> {
  State(protocol::kube::Api& a, Callbacks c) : api(a), callbacks(std::move(c)) {}

  struct Known {
    ImageCheck check;
    std::uint64_t order = 0;
    std::size_t tries = 0;  // nodes that did not answer
    base::TimePoint not_before{};
    bool creating = false;
  };
  struct Pod {
    Json reduced;
    base::TimePoint seen{};
    bool deleting = false;
  };

  void Watch(const std::string& namespace_name) {
    if (informer) return;
    space = namespace_name;
    Informer::Options options;
    options.resource = kCheckPods;
    options.namespace_name = space;
    options.label_selector = kImageCheckLabel;
    options.most_objects = 1000;
    options.reduce = ReducedCheckPod;
    informer.emplace(api, options,
                     Informer::Handlers{.changed = [this](const Json& pod) { Seen(pod); },
                                        .removed =
                                            [this](const auto&, const auto& name) {
                                              pods.erase(name);
                                              callbacks.due();
                                            },
                                        .synced = [this] { callbacks.due(); },
                                        .problem = Unreadable});
    informer->Start();
  }

  /// Without it nothing else is missing: no policy is in error for that.
  static void Unreadable(const Status& why) {
    if (!why.ok())
      base::Log(base::kWarn, "pods that check images cannot be read",
                {{"why", why.error().message()}});
  }

  base::TimePoint Now() const { return api.executor().clock().Now(); }

  void Seen(const Json& pod) {
    Pod& known = pods.try_emplace(TextAt(pod, "/metadata/name"), Pod{{}, Now()}).first->second;
    known.reduced = pod;
    if (const std::string check = TextAt(pod, "/check"); checks.contains(check))
      answers[check] = ImageAnswerOf(pod, answers[check]);
    callbacks.due();
  }

  void Want(const std::map<std::string, ImageCheck>& wanted) {
    const auto is_other = [&wanted](const auto& one) { return !wanted.contains(one.first); };
    std::erase_if(checks, is_other);
    std::erase_if(answers, is_other);
    for (const auto& [name, check] : wanted) {
      const auto [at, is_new] = checks.try_emplace(name);
      if (is_new) at->second.order = ++last_order;
      at->second.check = check;
      answers.try_emplace(name);
    }
    if (!informer || !informer->synced()) return;
    for (auto& [name, pod] : pods) Judge(name, pod);
    for (Known* check : Waiting()) Create(*check);
  }

  /// A pod that is there: whether it goes.
  void Judge(const std::string& name, Pod& pod) {
    if (pod.deleting) return;
    const std::string check_name = TextAt(pod.reduced, "/check");
    const auto found = checks.find(check_name);
    if (found == checks.end()) return Delete(name, pod);
    const ImageAnswer& answer = answers[check_name] =
        ImageAnswerOf(pod.reduced, answers[check_name]);
    if (answer.state == ImageState::kThere) return Delete(name, pod);
    Known& known = found->second;
    const auto& nodes = known.check.nodes;
    const bool elsewhere = std::ranges::find(nodes, TextAt(pod.reduced, "/node")) == nodes.end();
    const base::Duration left = pod.seen + kPatience - Now();
    const bool silent = answer.state == ImageState::kUnknown && left <= 0s;
    if (!elsewhere && !silent && !pod.reduced.value("refused", false)) {
      if (answer.state == ImageState::kUnknown) callbacks.due_after(left);
      return;
    }
    ++known.tries;
    known.not_before = Now() + kNextTry;
    Delete(name, pod);
  }

  bool HasPod(const std::string& check) const {
    return std::ranges::any_of(pods, [&](const auto& one) {
      return !one.second.deleting && TextAt(one.second.reduced, "/check") == check;
    });
  }

  /// Those that need a pod and may have one now.
  std::vector<Known*> Waiting() {
    std::vector<Known*> waiting;
    std::size_t creating = 0, unanswered = 0;
    for (auto& [name, known] : checks) {
      creating += known.creating ? 1 : 0;
      const bool has_pod = HasPod(name);
      const ImageState state = answers[name].state;
      unanswered += has_pod && state == ImageState::kUnknown ? 1 : 0;
      if (has_pod || known.creating || state == ImageState::kThere || known.check.nodes.empty())
        continue;
      waiting.push_back(&known);
    }
    const base::TimePoint now = Now();
    std::ranges::sort(waiting, {}, [](const Known* one) { return one->order; });
    for (const Known* one : waiting)
      if (one->not_before > now) callbacks.due_after(one->not_before - now);
    std::erase_if(waiting, [now](const Known* one) { return one->not_before > now; });
    const bool full =
        pods.size() + creating >= kMostPods || unanswered + creating >= kMostUnanswered;
    if (waiting.empty() || full) return {};
    if (now < next_creation) {
      callbacks.due_after(next_creation - now);
      return {};
    }
    if (waiting.size() > 1) callbacks.due_after(kBetween);
    waiting.resize(1);
    return waiting;
  }

  void Create(Known& known) {
    const std::vector<std::string>& nodes = known.check.nodes;
    Json pod = ImageCheckPod(known.check, nodes[known.tries % nodes.size()]);
    callbacks.own(pod);
    known.creating = true;
    next_creation = Now() + kBetween;
    ++writes;
    api.Do(protocol::kube::Create(kCheckPods, space, pod, kManager),
           base::IfAlive(this,
                         [name = known.check.name](State& self, const Result<ApiResponse>& answer) {
                           self.Created(name, answer);
                         }));
  }

  void Created(const std::string& name, const Result<ApiResponse>& answer) {
    const auto pod = protocol::kube::Parse(answer);
    const auto known = checks.find(name);
    if (known != checks.end()) known->second.creating = false;
    if (pod.ok()) {
      Seen(ReducedCheckPod(*pod));
      return;
    }
    if (known == checks.end()) return;
    known->second.not_before = Now() + kNextTry;
    if (pod.error().code() != Code::kAlreadyExists) {
      base::Log(base::kWarn, "image of a driver not checked",
                {{"image", known->second.check.image}, {"why", pod.error().message()}});
      if (answers[name].state == ImageState::kUnknown) answers[name].why = pod.error().message();
    }
    callbacks.due();
  }

  void Delete(const std::string& name, Pod& pod) {
    pod.deleting = true;
    ++writes;
    api.Do(protocol::kube::Delete(kCheckPods, space, name),
           base::IfAlive(this, [name](State& self, const Result<ApiResponse>& answer) {
             if (!answer.ok()) self.NotDeleted(name, answer.error());
           }));
  }

  void NotDeleted(const std::string& name, const Error& why) {
    if (why.code() == Code::kNotFound) {
      pods.erase(name);  // the watch had said so before the answer to its creation came
      return callbacks.due();
    }
    api.executor().PostAfter(kNextTry, base::IfAlive(this, [name](State& self) {
                               const auto found = self.pods.find(name);
                               if (found == self.pods.end()) return;
                               found->second.deleting = false;
                               self.callbacks.due();
                             }));
  }

  protocol::kube::Api& api;
  const Callbacks callbacks;
  std::string space;
  std::map<std::string, Known> checks;
  std::map<std::string, ImageAnswer> answers;
  std::map<std::string, Pod> pods;  // that are there
  base::TimePoint next_creation{};
  std::uint64_t last_order = 0, writes = 0;
  std::optional<Informer> informer;
};

ImageChecks::ImageChecks(protocol::kube::Api& api, Callbacks callbacks)
    : state_(std::make_shared<State>(api, std::move(callbacks))) {}

ImageChecks::~ImageChecks() = default;

void ImageChecks::Want(const std::string& namespace_name,
                       const std::map<std::string, ImageCheck>& checks) {
  state_->Watch(namespace_name);
  state_->Want(checks);
}

const std::map<std::string, ImageAnswer>& ImageChecks::answers() const { return state_->answers; }
bool ImageChecks::settled() const { return state_->pods.empty(); }
std::uint64_t ImageChecks::writes() const { return state_->writes; }

}  // namespace penstock::cluster
