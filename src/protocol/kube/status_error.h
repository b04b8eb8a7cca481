// Translates unsuccessful answers (HTTP status codes and metav1.Status) to our errors, in one
// place.
#pragma once

#include <string>
#include <string_view>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "protocol/kube/api.h"

namespace penstock::protocol::kube {

/// The error of an answer with a status of 300 or more. `body` may be anything: if it is a Status
/// object, its message is used. A 403 by RBAC names the missing rule; the codes are those in api.h.
/// Pure.
base::Error StatusError(int status, std::string_view body, const ApiCall& call);

/// Whether it is the message of a refusal by RBAC (StatusError). A server that has just started
/// refuses so until it has read its roles and bindings.
bool NamesMissingRule(std::string_view message);
/// Whether it is the message about a webhook that the server cannot call, and without which it
/// takes no write. Kubernetes: apiserver/pkg/admission/plugin/webhook ("failed calling webhook"),
/// apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go ("conversion webhook
/// for").
bool NamesUncalledWebhook(std::string_view message);
/// A server has read its roles after some 20 s, what it refused then is tried again within a minute
/// (Informer, ReconcileLoop after its first refusals, WorkQueue), and a watch in which nothing
/// happens counts as served after another 11 s: what it refuses after this time is not permitted.
inline constexpr base::Duration kRolesAreKnown = std::chrono::seconds(100);

/// Whether a write of an object with a uid found that it was deleted meanwhile, or that another one
/// has its name.
bool IsOfAnother(const base::Error& error);

/// The RBAC rule that permits a call, as in a Role: `apiGroups: [""], resources: ["nodes/status"],
/// resourceNames: ["n1"], verbs: ["patch"]`. Kubernetes:
/// docs/reference/access-authn-authz/authorization, "Determine the request verb".
std::string MissingRule(const ApiCall& call);

}  // namespace penstock::protocol::kube
