// Selects objects by their labels, as Kubernetes does. Pure; any thread may call it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/cluster/kube_part.h"
#include "base/core/result.h"

namespace penstock::api {

using ObjectLabels = std::map<std::string, std::string>;

/// One requirement of a selector.
struct LabelRule {
  enum class Operator { kIn, kNotIn, kExists, kDoesNotExist, kGreater, kLess };
  std::string key;
  Operator op = Operator::kIn;
  std::set<std::string> values;

  bool Matches(const ObjectLabels& labels) const;
  bool operator==(const LabelRule&) const = default;
};

/// All rules must match. Without rules it matches everything.
class LabelSelector {
 public:
  /// The form of `kubectl -l`: "app=a,tier in (x, y),!legacy". kInvalidArgument names the part.
  static Result<LabelSelector> Parse(std::string_view text);

  bool Matches(const ObjectLabels& labels) const;
  bool empty() const { return rules_.empty(); }

 private:
  std::vector<LabelRule> rules_;
};

/// What a NodeAffinity requires; preferences do not choose nodes.
class NodeAffinity {
 public:
  /// Of `{"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [...]}}`; empty
  /// text: every node matches. kInvalidArgument: the first part that is not of this form.
  static Result<NodeAffinity> Parse(const KubeJson& affinity);

  /// One of the terms must match; a term without rules matches nothing, as in Kubernetes.
  bool Matches(const ObjectLabels& labels, std::string_view node) const;

  /// The keys of labels that decide.
  std::set<std::string> Keys() const;

 private:
  struct Term {
    std::vector<LabelRule> labels, fields;
  };
  bool required_ = false;
  std::vector<Term> terms_;
};

}  // namespace penstock::api
