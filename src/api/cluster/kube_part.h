// Parts of Kubernetes objects that users write into ours.
#pragma once

#include <string>

namespace penstock::api {

/// A part of a Kubernetes object that is passed on as it is, as JSON text; empty: not set. The API
/// server checks it.
struct KubeJson {
  std::string text;
  bool empty() const { return text.empty(); }
  bool operator==(const KubeJson&) const = default;
};

}  // namespace penstock::api
