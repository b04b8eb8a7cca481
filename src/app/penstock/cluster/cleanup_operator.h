// The parts of `penstock cleanup` for clusters with the operator: before an uninstall, while it
// runs, and after.
#pragma once

#include "app/penstock/cluster/cleanup.h"

namespace penstock::app {

/// Deletes the ClusterPolicy, NVIDIADriver, GPUCluster, DeviceConfig and Penstock objects of the
/// helm release `options.release` (a DeviceConfig in its namespace), and waits until the operator
/// has taken back what it wrote for them, which it says by removing its finalizer. Where the
/// timeout passes first, a remark says so and the finalizer is removed here: helm waits for objects
/// that it deletes. Other objects of these kinds, which users made, stay.
CleanupOutcome DeletePolicies(const ApiServer& server, const CleanupOptions& options,
                              base::Duration timeout, const base::Clock& clock, const Sleep& sleep);

/// Removes what an operator that runs no longer left: objects that it made, in
/// `options.namespace_name` and of the cluster, its Lease, and its finalizer, which would keep
/// users from deleting their policies. Waits until its agents have ended, which would write again;
/// a remark where the timeout passes first. False where the server does not respond: a failure says
/// so, and the caller stops.
bool CleanAfterOperator(const ApiServer& server, const CleanupOptions& options,
                        base::Duration timeout, const base::Clock& clock, const Sleep& sleep,
                        CleanupOutcome& outcome);

/// Deletes the CRDs with all their objects, but for one that another operator has applied, or of
/// which objects exist in other namespaces: a remark says so.
void DeleteDefinitions(const ApiServer& server, const CleanupOptions& options,
                       CleanupOutcome& outcome);

}  // namespace penstock::app
