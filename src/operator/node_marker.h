// Watches the cluster's Nodes, of which it keeps a few labels, and writes the labels and
// annotations that the policy wants on them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/cluster/penstock.h"
#include "operator/node_marks.h"
#include "protocol/kube/api.h"

namespace penstock::cluster {

/// Use on the api's executor.
class NodeMarker {
 public:
  struct Callbacks {
    std::function<void()> changed;                         ///< nodes(), or settled()
    std::function<void(const base::Status& why)> problem;  ///< of reading; ok once it is over
  };
  NodeMarker(protocol::kube::Api& api, Callbacks callbacks);
  ~NodeMarker();

  /// Sets what is wanted of the nodes. `wanted`: false to take back what `spec` wrote. `before`:
  /// the keys of what another process may have written for other specs; that is taken back, as is
  /// what was wanted before.
  void Want(const api::PenstockSpec& spec, bool wanted, const MarkKeys& before);

  /// Sets the nodes whose hosts have a driver of their own.
  void SetHostDrivers(std::set<std::string> nodes);

  bool synced() const;
  /// Whether every node is known to have what it should.
  bool settled() const;
  std::vector<std::string> unsettled() const;  ///< names of the other nodes
  /// Names of the nodes of which something was taken back since nothing is wanted of them.
  std::vector<std::string> taken_back() const;

  struct DeviceNode {
    std::string name;
    bool opted_out = false;
    bool host_driver = false;  ///< labelled as one whose host has a driver of its own
  };
  /// The nodes that have devices.
  std::vector<DeviceNode> nodes() const;
  /// Any node, also without devices that its labels show; empty: there is no such node.
  std::optional<DeviceNode> Find(const std::string& name) const;
  std::size_t known() const;     ///< number of all nodes
  std::uint64_t writes() const;  ///< since the start
  /// Error of the last write of a node, by its text; ends with a success on that node.
  std::vector<std::string> problems() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::cluster
