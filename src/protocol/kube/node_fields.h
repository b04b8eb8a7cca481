// Which fields of a Node go where they are taken back as those of a manager that applied them.
#pragma once

#include "protocol/kube/api.h"

namespace penstock::protocol::kube {

/// Whether an entry of a Node's managedFields is an apply of labels and annotations, and of none
/// that the node's own credentials may not change. The name of a manager proves nothing: these
/// credentials may write entries under any name and with any fields, such as taints, and an empty
/// apply under that name then removes the fields with the rights of who applies. Kubernetes:
/// plugin/pkg/admission/noderestriction. Pure; the entry may be anything.
bool MayBeTakenBack(const Json& entry);

}  // namespace penstock::protocol::kube
