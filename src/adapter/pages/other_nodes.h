// Fetches what the page shows of other nodes from their agents, while a browser asks for it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapter/pages/node_access.h"
#include "api/config/node_config.h"
#include "base/backoff.h"
#include "base/executor.h"
#include "os/loop.h"
#include "protocol/http/response.h"
#include "protocol/net/http_getter.h"

namespace penstock::adapter::pages {

/// Use on the loop's thread. However many browsers ask, each document is requested once at a time
/// and kept for some seconds. A node that does not answer is asked less and less often, up to once
/// a minute. What was not asked for in a minute is dropped.
class OtherNodes {
 public:
  using Done = std::function<void(protocol::http::Response)>;
  static constexpr std::size_t kMostBytes = 1u << 20;      ///< of one document
  static constexpr std::size_t kMostKept = 16u << 20;      ///< of all documents
  static constexpr std::size_t kMostDocuments = 1u << 10;  ///< of all nodes
  static constexpr int kMostConnections = 8;
  static constexpr int kMostRequests = 32;  ///< to one node, in three seconds

  /// `io` reads the files of the configuration; it may outlive this object.
  OtherNodes(os::Loop& loop, base::Executor& io, api::PageConfig config);
  ~OtherNodes();

  /// "gpu2.example.com:9400", in the order of the configuration.
  const std::vector<std::string>& names() const { return names_; }

  /// Passes a document of a node on ("state", "queue?from=200"): as JSON whose content the node
  /// determines, or with the status 502 as {"problem"}. 404 for a node that is not configured.
  void Get(std::size_t node, const std::string& document, Done done);

 private:
  using Key = std::pair<std::size_t, std::string>;
  struct Document {
    std::shared_ptr<const std::string> body;  // null: none has arrived yet
    std::string tag;
    base::TimePoint at{}, asked{};
    bool fetching = false;
    std::vector<Done> waiting;
  };
  struct Node {
    std::string problem;  // empty: it answered last time
    base::Backoff backoff;
    base::TimePoint again{};  // not before
    base::TimePoint since{};  // in which `requests` were sent
    int requests = 0;
  };

  bool MakeRoom();
  bool Admits(Node& node);
  void Fetch(const Key& key);
  void WithAccess(std::function<void(const base::Result<NodeAccess>&)> then);
  void Send(const Key& key, const NodeAccess& access);
  void Arrived(const Key& key, base::Result<protocol::net::HttpGot> got);
  void Answer(const Key& key, const std::string& problem);
  void BoundBytes(const Key& kept);
  void DropUnread();

  os::Loop& loop_;
  base::Executor& io_;
  const api::PageConfig config_;
  std::vector<std::string> names_;
  std::vector<Node> nodes_;
  std::map<Key, Document> documents_;
  std::optional<base::Result<NodeAccess>> access_;
  base::TimePoint access_at_{};
  std::vector<std::function<void(const base::Result<NodeAccess>&)>> want_access_;
  base::TimerId timer_ = 0;
  protocol::net::HttpGetter getter_;
  std::shared_ptr<OtherNodes*> self_;  // null inside once destroyed: for pending functions
};

}  // namespace penstock::adapter::pages
