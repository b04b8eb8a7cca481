#include "operator/definitions.h"

#include <algorithm>
#include <set>

#include "api/compat/policy_kinds.h"
#include "base/core/hash.h"
#include "base/core/json_text.h"
#include "base/core/strings.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "operator/json_values.h"
#include "operator/names.h"

namespace penstock::cluster {

using protocol::kube::ApiResponse;
using protocol::kube::ReconcileLoop;
using namespace std::chrono_literals;

namespace {

constexpr base::Duration kPoll = 200ms;  // a server establishes a definition within a second
constexpr base::Duration kLook = 10min;  // someone may have removed it
constexpr const char* kVersionPointer = "/metadata/annotations/penstock.io~1version";
constexpr const char* kHashPointer = "/metadata/annotations/penstock.io~1applied";

const protocol::kube::Resource kDefinitions{"apiextensions.k8s.io", "v1",
                                            "customresourcedefinitions"};

std::vector<std::int64_t> NumbersOf(const std::string& version) {
  std::vector<std::int64_t> numbers;
  for (const std::string& part : base::Split(version, '.'))
    numbers.push_back(base::ParseInt(part).value_or(0));
  return numbers;
}

bool IsEstablished(const Json& definition) {
  const Json* conditions = Find(definition, "/status/conditions");
  return conditions != nullptr && conditions->is_array() &&
         std::ranges::any_of(*conditions, [](const Json& condition) {
           return TextAt(condition, "/type") == "Established" &&
                  TextAt(condition, "/status") == "True";
         });
}

}  // namespace

Json Completed(Json definition) {
  Json& annotations = definition["metadata"]["annotations"];
  annotations[std::string(api::compat::kDefinitionVersion)] = PENSTOCK_VERSION;
  annotations[std::string(kAppliedHash)] = std::to_string(base::Hash(base::JsonText(definition)));
  return definition;
}

bool IsLater(const Json& found, const std::string& version) {
  return NumbersOf(TextAt(found, kVersionPointer)) > NumbersOf(version);
}

struct Definitions::State : std::enable_shared_from_this<State> {
  State(protocol::kube::Api& a, ReconcileLoop& w, std::function<void(const std::string&)> e)
      : api(a), work(w), established(std::move(e)) {}

  using Done = ReconcileLoop::Done;

  void Add(Json definition) {
    const std::string name = TextAt(definition, "/metadata/name");
    wanted[name] = Completed(std::move(definition));
    work.Add({.name = TaskOf(name), .work = [weak = weak_from_this(), name](const Done& done) {
                if (const auto self = weak.lock()) self->Look(name, done);
              }});
  }

  static std::string TaskOf(const std::string& name) { return "definition " + name; }

  void Look(const std::string& name, const Done& done) {
    api.Do(protocol::kube::Get(kDefinitions, "", name),
           base::IfAlive(this, [name, done](State& self, const Result<ApiResponse>& answer) {
             self.Looked(name, answer, done);
           }));
  }

  void Looked(const std::string& name, const Result<ApiResponse>& answer, const Done& done) {
    const bool missing = !answer.ok() && answer.error().code() == Code::kNotFound;
    if (!answer.ok() && !missing) return done(answer.error());
    const auto found = missing ? Result<Json>(Json()) : protocol::kube::Parse(answer);
    if (!found.ok()) return done(found.error());
    const Json& definition = wanted[name];
    if (TextAt(*found, kHashPointer) == TextAt(definition, kHashPointer))
      return Wait(name, *found, done);
    const bool is_foreign =
        api::compat::IsForeignDefinition(name, TextsAt(*found, "/metadata/annotations"));
    if (is_foreign || IsLater(*found, PENSTOCK_VERSION)) return Wait(name, *found, done);
    api.Do(protocol::kube::Apply(kDefinitions, "", definition, kManager),
           base::IfAlive(this, [name, done](State& self, const Result<ApiResponse>& written) {
             const auto object = protocol::kube::Parse(written);
             if (!object.ok()) return done(object.error());
             base::Log(base::kInfo, "definition applied", {{"name", name}});
             self.Wait(name, *object, done);
           }));
  }

  void Wait(const std::string& name, const Json& found, const Done& done) {
    const bool serves = IsEstablished(found);
    if (serves && ready.insert(name).second) established(name);
    work.After(TaskOf(name), serves ? kLook : kPoll);
    done({});
  }

  protocol::kube::Api& api;
  ReconcileLoop& work;
  const std::function<void(const std::string&)> established;
  std::map<std::string, Json> wanted;
  std::set<std::string> ready;
};

Definitions::Definitions(protocol::kube::Api& api, ReconcileLoop& work,
                         std::vector<Json> definitions,
                         std::function<void(const std::string&)> established)
    : state_(std::make_shared<State>(api, work, std::move(established))) {
  for (Json& definition : definitions) state_->Add(std::move(definition));
}

Definitions::~Definitions() = default;

void Definitions::Start() {
  for (const auto& [name, definition] : state_->wanted) state_->work.Soon(State::TaskOf(name));
}

}  // namespace penstock::cluster
