#include "api/cluster/label_selector.h"

#include <algorithm>
#include <array>

#include "api/labels.h"
#include "base/core/document.h"
#include "base/core/strings.h"

namespace penstock::api {
namespace {

using Operator = LabelRule::Operator;

constexpr std::array<std::pair<std::string_view, Operator>, 6> kOperators = {
    {{"In", Operator::kIn},
     {"NotIn", Operator::kNotIn},
     {"Exists", Operator::kExists},
     {"DoesNotExist", Operator::kDoesNotExist},
     {"Gt", Operator::kGreater},
     {"Lt", Operator::kLess}}};

/// At its commas outside of parentheses.
std::vector<std::string> RequirementsOf(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth <= 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

Error NoRequirement(std::string_view part) {
  return {Code::kInvalidArgument,
          "\"" + std::string(part) +
              "\" is no requirement of labels, such as \"app=a\", \"app in (a, b)\" or \"!app\""};
}

/// "tier in (x, y)".
Result<LabelRule> SetRequirement(std::string_view part, std::size_t open) {
  if (part.back() != ')') return NoRequirement(part);
  const std::string_view before = base::Trim(part.substr(0, open));
  const std::size_t space = before.find_first_of(" \t");
  if (space == std::string_view::npos) return NoRequirement(part);
  LabelRule rule{std::string(before.substr(0, space)), Operator::kIn, {}};
  const std::string_view word = base::Trim(before.substr(space));
  if (word != "in" && word != "notin") return NoRequirement(part);
  if (word == "notin") rule.op = Operator::kNotIn;
  for (const std::string& value : base::Split(part.substr(open + 1, part.size() - open - 2), ','))
    rule.values.emplace(base::Trim(value));
  return rule;
}

Result<LabelRule> OneRequirement(std::string_view part) {
  if (const std::size_t open = part.find('('); open != std::string_view::npos)
    return SetRequirement(part, open);
  if (part.front() == '!')
    return LabelRule{std::string(base::Trim(part.substr(1))), Operator::kDoesNotExist, {}};
  for (const auto& [sign, op] : {std::pair(std::string_view("!="), Operator::kNotIn),
                                 std::pair(std::string_view("=="), Operator::kIn),
                                 std::pair(std::string_view("="), Operator::kIn)})
    if (const std::size_t at = part.find(sign); at != std::string_view::npos)
      return LabelRule{std::string(base::Trim(part.substr(0, at))),
                       op,
                       {std::string(base::Trim(part.substr(at + sign.size())))}};
  return LabelRule{std::string(part), Operator::kExists, {}};
}

bool IsPossible(const LabelRule& rule) {
  return IsLabelKey(rule.key) && std::ranges::all_of(rule.values, [](const std::string& value) {
           return IsLabelValue(value);
         });
}

/// Whether the one value of the rule is less or greater than the label's, both whole numbers.
bool Compares(const LabelRule& rule, const std::string& label) {
  const auto found = base::ParseInt(label);
  const auto limit = rule.values.size() == 1 ? base::ParseInt(*rule.values.begin()) : std::nullopt;
  if (!found || !limit) return false;
  return rule.op == Operator::kGreater ? *found > *limit : *found < *limit;
}

std::vector<LabelRule> RulesIn(base::MapReader& term, std::string_view list,
                               base::Problems& problems) {
  std::vector<LabelRule> rules;
  const base::Value* all = term.List(list);
  for (std::size_t i = 0; all != nullptr && i < all->list->size(); ++i) {
    base::MapReader reader((*all->list)[i], base::Item(term.Path(list), i), problems);
    LabelRule& rule = rules.emplace_back();
    reader.Require("key");
    rule.key = reader.String("key").value_or("");
    std::vector<std::string> words;
    for (const auto& [word, op] : kOperators) words.emplace_back(word);
    reader.Require("operator");
    const auto chosen = reader.OneOf("operator", words);
    for (const auto& [word, op] : kOperators)
      if (chosen == word) rule.op = op;
    for (std::string& value : reader.Strings("values").value_or(std::vector<std::string>{}))
      rule.values.insert(std::move(value));
  }
  return rules;
}

bool AllMatch(const std::vector<LabelRule>& rules, const ObjectLabels& labels) {
  return std::ranges::all_of(rules, [&](const LabelRule& rule) { return rule.Matches(labels); });
}

}  // namespace

bool LabelRule::Matches(const ObjectLabels& labels) const {
  const auto found = labels.find(key);
  const bool there = found != labels.end();
  switch (op) {
    case Operator::kIn: return there && values.contains(found->second);
    case Operator::kNotIn: return !there || !values.contains(found->second);
    case Operator::kExists: return there;
    case Operator::kDoesNotExist: return !there;
    case Operator::kGreater:
    case Operator::kLess: return there && Compares(*this, found->second);
  }
  return false;
}

Result<LabelSelector> LabelSelector::Parse(std::string_view text) {
  LabelSelector selector;
  if (base::Trim(text).empty()) return selector;
  for (const std::string& part : RequirementsOf(text)) {
    const std::string_view trimmed = base::Trim(part);
    if (trimmed.empty()) return NoRequirement(part);
    ASSIGN(LabelRule rule, OneRequirement(trimmed));
    if (!IsPossible(rule)) return NoRequirement(trimmed);
    selector.rules_.push_back(std::move(rule));
  }
  return selector;
}

bool LabelSelector::Matches(const ObjectLabels& labels) const { return AllMatch(rules_, labels); }

Result<NodeAffinity> NodeAffinity::Parse(const KubeJson& affinity) {
  NodeAffinity parsed;
  if (affinity.empty()) return parsed;
  ASSIGN(const base::Value document, base::ParseJson(affinity.text, "nodeAffinity"));
  base::Problems problems{"nodeAffinity"};
  base::MapReader top(document, "", problems);
  const char* const kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  if (const base::Value* required = top.Map(kRequired)) {
    parsed.required_ = true;
    base::MapReader reader(*required, kRequired, problems);
    reader.Require("nodeSelectorTerms");
    const base::Value* terms = reader.List("nodeSelectorTerms");
    for (std::size_t i = 0; terms != nullptr && i < terms->list->size(); ++i) {
      base::MapReader term((*terms->list)[i], base::Item(reader.Path("nodeSelectorTerms"), i),
                           problems);
      parsed.terms_.push_back(
          {RulesIn(term, "matchExpressions", problems), RulesIn(term, "matchFields", problems)});
    }
  }
  if (!problems.empty()) return problems.ToError();
  return parsed;
}

bool NodeAffinity::Matches(const ObjectLabels& labels, std::string_view node) const {
  if (!required_) return true;
  const ObjectLabels fields = {{"metadata.name", std::string(node)}};
  return std::ranges::any_of(terms_, [&](const Term& term) {
    return !(term.labels.empty() && term.fields.empty()) && AllMatch(term.labels, labels) &&
           AllMatch(term.fields, fields);
  });
}

std::set<std::string> NodeAffinity::Keys() const {
  std::set<std::string> keys;
  for (const Term& term : terms_)
    for (const LabelRule& rule : term.labels) keys.insert(rule.key);
  return keys;
}

}  // namespace penstock::api
