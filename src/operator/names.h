// Names that the operator writes into the cluster.
#pragma once

#include <string_view>

namespace penstock::cluster {

inline constexpr std::string_view kManager = "penstock-operator";  ///< field manager
inline constexpr std::string_view kManagedBy = "app.kubernetes.io/managed-by";
inline constexpr std::string_view kSelector = "app.kubernetes.io/managed-by=penstock-operator";
inline constexpr std::string_view kSelectorOfOthers =
    "app.kubernetes.io/managed-by!=penstock-operator";
inline constexpr std::string_view kAgentName = "penstock-agent";  ///< DaemonSet and ConfigMap
/// DaemonSet and ConfigMap, while it is taken back what agents left on their hosts.
inline constexpr std::string_view kHostReleaseName = "penstock-host-release";

/// On our objects: the hash of what was applied last, so that fields are noticed that are not
/// wanted any more.
inline constexpr std::string_view kAppliedHash = "penstock.io/applied";
/// On a policy, until what it caused was taken back.
inline constexpr std::string_view kFinalizer = "penstock.io/cleanup";

}  // namespace penstock::cluster
