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

/// "v1, v2", of those that pass.
std::string VersionsOf(const Json& definition, bool (*passes)(const Json& version)) {
  std::vector<std::string> names;
  for (const Json& version : ListAt(definition, "/spec/versions"))
    if (passes(version)) names.push_back(TextAt(version, "/name"));
  return base::Join(names, ", ");
}

bool IsServed(const Json& version) {
  const Json* served = Find(version, "/served");
  return served != nullptr && *served == true;
}

bool Has(const Json& definition, const std::string& name, bool served) {
  return std::ranges::any_of(ListAt(definition, "/spec/versions"), [&](const Json& version) {
    return TextAt(version, "/name") == name && (!served || IsServed(version));
  });
}

/// A version in which the found one has objects, and which the wanted one lacks; empty: none.
std::string StoredOnlyIn(const Json& found, const Json& wanted) {
  for (const Json& stored : ListAt(found, "/status/storedVersions"))
    if (stored.is_string() && !Has(wanted, stored, false)) return stored;
  return {};
}

/// The command after which a definition is no longer kept for this annotation.
std::string RemovalOf(std::string_view annotation, const std::string& name) {
  return "`kubectl annotate crd " + name + " " + std::string(annotation) + "-`";
}

std::string WhyKept(const Json& found, const Json& wanted) {
  const std::string name = TextAt(wanted, "/metadata/name"), ours = TextAt(wanted, kVersionPointer),
                    theirs = TextAt(found, kVersionPointer);
  const auto annotations = TextsAt(found, "/metadata/annotations");
  if (api::compat::IsForeignDefinition(name, annotations))
    return "the definition " + name + " (" + VersionsOf(found, IsServed) +
           ") is another operator's, and stays. Once that operator is uninstalled, " +
           RemovalOf(api::compat::kForeignDefinition, name) + " lets this one apply its own";
  if (NumbersOf(theirs) > NumbersOf(ours))
    return "the definition " + name + " is of release " + theirs + ", later than this operator's " +
           ours + ", and stays. Upgrade the operator; if it is to stay at " + ours + ", " +
           RemovalOf(api::compat::kDefinitionVersion, name) + " lets it apply its own";
  if (const std::string stored = StoredOnlyIn(found, wanted); !stored.empty())
    return "the definition " + name + " has objects stored in version " + stored +
           ", which this operator's " + ours + " does not know, and stays. Upgrade the operator; " +
           "if no object is stored in " + stored +
           " any more, remove it from status.storedVersions";
  return {};
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

KeptDefinition KeptAs(const Json& found, const Json& wanted) {
  KeptDefinition kept{.why = WhyKept(found, wanted)};
  if (kept.why.empty()) return kept;
  const std::string version = TextAt(wanted, "/spec/versions/0/name");
  kept.served = Has(found, version, true);
  if (!kept.served)
    kept.why += ". It does not serve " + version +
                ", the version that this operator reads: no object of the kind has an effect";
  return kept;
}

struct Definitions::State : std::enable_shared_from_this<State> {
  State(protocol::kube::Api& a, ReconcileLoop& w, Callbacks c)
      : api(a), work(w), callbacks(std::move(c)) {}

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
    if (!answer.ok() && !missing) return Unread(name, answer.error(), done);
    const auto found = missing ? Result<Json>(Json()) : protocol::kube::Parse(answer);
    if (!found.ok()) return done(found.error());
    const Json& definition = wanted[name];
    const bool agrees = Agrees(name, *found);
    KeptDefinition keeping = agrees || missing ? KeptDefinition{} : KeptAs(*found, definition);
    const bool stays = agrees || !keeping.why.empty();
    Keep(name, std::move(keeping));
    if (stays) return Wait(name, *found, done);
    api.Do(protocol::kube::Apply(kDefinitions, "", definition, kManager),
           base::IfAlive(
               this, [name, found = *found, done](State& self, const Result<ApiResponse>& written) {
                 const auto object = protocol::kube::Parse(written);
                 if (!object.ok()) return self.Refused(name, found, object.error(), done);
                 base::Log(base::kInfo, "definition applied", {{"name", name}});
                 self.made[name] = HashOfSpec(*object);
                 self.Wait(name, *object, done);
               }));
  }

  /// Whether it is ours is not known, and its objects may be: they are read as the server has them.
  void Unread(const std::string& name, const base::Error& why, const Done& done) {
    if (ReconcileLoop::IsRefusal(why.code())) {
      Keep(name, {.why = "the definition " + name + " cannot be read, and stays: " + why.message() +
                         ". Permit the operator to get and patch it, as its chart does, or, if it "
                         "is applied otherwise, set operator.upgradeCRD to false"});
      Serve(name);
    }
    done(why);
  }

  /// Others write the definition and leave our annotations; a server may have written what we
  /// applied in another form.
  bool Agrees(const std::string& name, const Json& found) {
    const Json& definition = wanted[name];
    if (TextAt(found, kHashPointer) != TextAt(definition, kHashPointer)) return false;
    return Covers(found.value("spec", Json()), definition["spec"]) ||
           made[name] == HashOfSpec(found);
  }

  static std::uint64_t HashOfSpec(const Json& definition) {
    return base::Hash(base::JsonText(definition.value("spec", Json())));
  }

  void Keep(const std::string& name, KeptDefinition now) {
    const auto before = kept.find(name);
    const bool same = before == kept.end() ? now.why.empty() : before->second == now;
    if (!read.insert(name).second && same) return;
    if (!same && !now.why.empty()) base::Log(base::kWarn, "definition kept", {{"why", now.why}});
    now.why.empty() ? void(kept.erase(name)) : void(kept[name] = std::move(now));
    callbacks.changed();
  }

  /// What is there is used: objects of other kinds do not wait until someone acts.
  void Refused(const std::string& name, const Json& found, const base::Error& why,
               const Done& done) {
    if (ReconcileLoop::IsRefusal(why.code()) && IsEstablished(found)) Serve(name);
    done(base::Error(why.code(), "definition " + name + ": " + why.message()));
  }

  void Wait(const std::string& name, const Json& found, const Done& done) {
    const bool serves = IsEstablished(found);
    if (serves) Serve(name);
    work.After(TaskOf(name), serves ? kLook : kPoll);
    done({});
  }

  void Serve(const std::string& name) {
    if (ready.insert(name).second) callbacks.established(name);
  }

  protocol::kube::Api& api;
  ReconcileLoop& work;
  const Callbacks callbacks;
  std::map<std::string, Json> wanted;
  std::map<std::string, KeptDefinition> kept;
  std::map<std::string, std::uint64_t> made;  // by the server, of what was applied
  std::set<std::string> read;                 // at least once
  std::set<std::string> ready;                // served
};

Definitions::Definitions(protocol::kube::Api& api, ReconcileLoop& work,
                         std::vector<Json> definitions, Callbacks callbacks)
    : state_(std::make_shared<State>(api, work, std::move(callbacks))) {
  for (Json& definition : definitions) state_->Add(std::move(definition));
}

Definitions::~Definitions() = default;

void Definitions::Start() {
  for (const auto& [name, definition] : state_->wanted) state_->work.Soon(State::TaskOf(name));
}

const std::map<std::string, KeptDefinition>* Definitions::kept() const {
  return state_->read.size() == state_->wanted.size() ? &state_->kept : nullptr;
}

}  // namespace penstock::cluster
