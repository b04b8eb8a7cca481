// Evaluates selectors, and computes which event a change is for a watcher with a selector.
#include "base/core/strings.h"
#include "protocol/kube/fake/store.h"

namespace penstock::protocol::kube::fake {
namespace {

std::vector<std::string> TermsOf(const std::map<std::string, std::string>& query,
                                 const std::string& key) {
  const auto found = query.find(key);
  if (found == query.end() || found->second.empty()) return {};
  return base::Split(found->second, ',');
}

// "a=b", "a==b", "a!=b"; without an operator, the key alone.
struct Term {
  std::string key, sign, value;
};

Term Parse(const std::string& text) {
  for (const std::string sign : {"!=", "==", "="}) {
    if (const auto at = text.find(sign); at != std::string::npos)
      return {text.substr(0, at), sign, text.substr(at + sign.size())};
  }
  return {text, "", ""};
}

std::string FieldOf(const Json& object, const std::string& path) {
  const Json* at = &object;
  for (const std::string& part : base::Split(path, '.')) {
    if (!at->is_object() || !at->contains(part)) return {};
    at = &(*at)[part];
  }
  return at->is_string() ? at->get<std::string>() : at->dump();
}

bool LabelMatches(const Json& labels, const std::string& text) {
  Term term = Parse(text);
  const bool absent = term.key.starts_with('!');
  if (absent) term.key.erase(0, 1);
  const bool present = labels.is_object() && labels.contains(term.key);
  if (term.sign.empty()) return present != absent;
  return (present && labels[term.key] == term.value) != (term.sign == "!=");
}

}  // namespace

bool Selector::Matches(const Json& object) const {
  if (object.is_null()) return false;
  if (!namespace_name.empty() && FieldOf(object, "metadata.namespace") != namespace_name)
    return false;
  for (const std::string& text : fields) {
    const Term term = Parse(text);
    if ((FieldOf(object, term.key) == term.value) == (term.sign == "!=")) return false;
  }
  const Json present = object.value("/metadata/labels"_json_pointer, Json());
  for (const std::string& text : labels) {
    if (!LabelMatches(present, text)) return false;
  }
  return true;
}

Selector SelectorOf(const Place& place, const std::map<std::string, std::string>& query) {
  return {place.namespace_name, TermsOf(query, "fieldSelector"), TermsOf(query, "labelSelector")};
}

Json EventOf(const Change& change, const Selector& selector) {
  const bool before = selector.Matches(change.before), after = selector.Matches(change.after);
  if (!before && !after) return Json();
  if (after) return {{"type", before ? "MODIFIED" : "ADDED"}, {"object", change.after}};
  Json gone = change.before;
  gone["metadata"]["resourceVersion"] = std::to_string(change.version);
  return {{"type", "DELETED"}, {"object", std::move(gone)}};
}

}  // namespace penstock::protocol::kube::fake
