// What an answer that is no success means: HTTP's codes and metav1.Status as our errors, in one place.
#pragma once

#include <string>
#include <string_view>

#include "base/core/result.h"
#include "edge/kube/api.h"

namespace penstock::edge::kube {

/// The error of an answer with a status from 300 on. `body` may be anything: the Status object's message is taken where it is one. A 403 by
/// RBAC names the rule that is missing; the codes are api.h's. Pure.
base::Error StatusError(int status, std::string_view body, const Call& call);

/// The RBAC rule that admits a call, as it would stand in a Role: `apiGroups: [""], resources: ["nodes/status"], resourceNames: ["n1"],
/// verbs: ["patch"]`. Kubernetes: docs/reference/access-authn-authz/authorization, "Determine the request verb".
std::string MissingRule(const Call& call);

}  // namespace penstock::edge::kube
