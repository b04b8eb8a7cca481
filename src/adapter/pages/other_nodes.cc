#include "adapter/pages/other_nodes.h"

#include <algorithm>

#include "adapter/pages/page_access.h"
#include "api/page_state.h"
#include "base/core/hash.h"
#include "protocol/net/trim.h"

namespace penstock::adapter::pages {

namespace {

using namespace std::chrono_literals;
using protocol::http::Response;

constexpr base::Duration kFresh = 3s;  // browsers ask every five seconds
constexpr base::Duration kUnread = 1min;
constexpr base::Duration kAccessAge = 10s;
constexpr base::Duration kFirstPause = 2s, kLongestPause = 1min;

/// "https://gpu2.example.com:9400/" without scheme and path.
std::string NameOf(const std::string& url) {
  const std::size_t begin = url.find("://") + 3;
  return url.substr(begin, url.find('/', begin) - begin);
}

std::string UrlOf(std::string node, const std::string& document) {
  while (node.ends_with('/')) node.pop_back();
  return node + "/ui/" + document;
}

/// Why what arrived is no document of an agent; empty: it is one. `kept`: a document was kept, and
/// may be current.
std::string ProblemOf(const protocol::net::HttpGot& got, bool kept) {
  switch (got.status) {
    case 200:
      return got.content_type.starts_with("application/json") ? "" : "its answer is not an agent's";
    case 304: return kept ? "" : "its answer is not an agent's";
    case 401: return "it requires valid credentials (page.credentialsFile)";
    case 403: return "it shows its page only to clients with credentials (page.credentialsFile)";
    case 404: return "its agent has no such page: it is older, or the device does not exist";
    default: return "it answered with the status " + std::to_string(got.status);
  }
}

}  // namespace

OtherNodes::OtherNodes(os::Loop& loop, base::Executor& io, api::PageConfig config)
    : loop_(loop),
      io_(io),
      config_(std::move(config)),
      getter_(loop, kMostConnections),
      self_(std::make_shared<OtherNodes*>(this)) {
  for (const std::string& url : config_.nodes) {
    names_.push_back(NameOf(url));
    nodes_.push_back({.problem = "", .backoff = {kFirstPause, kLongestPause}});
  }
}

OtherNodes::~OtherNodes() {
  *self_ = nullptr;
  loop_.Cancel(timer_);
}

void OtherNodes::Get(std::size_t node, const std::string& document, Done done) {
  const Key key{node, document};
  if (node >= nodes_.size()) return done(PageText(404, "this node is not configured\n"));
  if (!documents_.contains(key) && !MakeRoom())
    return done(PageText(503, "too many documents are being fetched; try again soon\n"));
  if (timer_ == 0) timer_ = loop_.PostAfter(kUnread, [this] { DropUnread(); });
  const base::TimePoint now = loop_.clock().Now();
  Document& kept = documents_[key];
  kept.asked = now;
  kept.waiting.push_back(std::move(done));
  if (kept.fetching) return;
  if (kept.body && now - kept.at < kFresh) return Answer(key, "");
  if (now < nodes_[node].again) return Answer(key, nodes_[node].problem);
  if (!Admits(nodes_[node])) return Answer(key, "too many different requests; try again soon");
  Fetch(key);
}

/// Whether one more request may be sent to the node: a reader could ask for a new document each
/// time.
bool OtherNodes::Admits(Node& node) {
  const base::TimePoint now = loop_.clock().Now();
  if (now - node.since >= kFresh) {
    node.since = now;
    node.requests = 0;
  }
  return ++node.requests <= kMostRequests;
}

/// Drops the document that was not read for the longest time if there are too many.
bool OtherNodes::MakeRoom() {
  if (documents_.size() < kMostDocuments) return true;
  auto oldest = documents_.end();
  for (auto one = documents_.begin(); one != documents_.end(); ++one)
    if (!one->second.fetching &&
        (oldest == documents_.end() || one->second.asked < oldest->second.asked))
      oldest = one;
  if (oldest == documents_.end()) return false;
  documents_.erase(oldest);
  return true;
}

void OtherNodes::Fetch(const Key& key) {
  documents_[key].fetching = true;
  WithAccess([this, key](const base::Result<NodeAccess>& access) {
    if (access.ok()) return Send(key, *access);
    nodes_[key.first].problem = access.error().message();
    Answer(key, access.error().message());
  });
}

/// Calls `then` at once or later, with what the files contained some seconds ago at most.
void OtherNodes::WithAccess(std::function<void(const base::Result<NodeAccess>&)> then) {
  if (access_ && loop_.clock().Now() - access_at_ < kAccessAge) return then(*access_);
  want_access_.push_back(std::move(then));
  if (want_access_.size() > 1) return;
  io_.Post([self = self_, &loop = loop_, config = config_] {
    loop.Post([self, access = LoadNodeAccess(config)] {
      if (*self == nullptr) return;
      OtherNodes& nodes = **self;
      nodes.access_ = access;
      nodes.access_at_ = nodes.loop_.clock().Now();
      for (const auto& next : std::exchange(nodes.want_access_, {})) next(access);
    });
  });
}

void OtherNodes::Send(const Key& key, const NodeAccess& access) {
  const Document& document = documents_[key];
  getter_.Get(
      {.url = UrlOf(config_.nodes[key.first], key.second),
       .authorization = access.authorization,
       .authority = access.authority,
       .tag = document.body ? document.tag : "",
       .most = kMostBytes},
      [this, key](base::Result<protocol::net::HttpGot> got) { Arrived(key, std::move(got)); });
}

void OtherNodes::Arrived(const Key& key, base::Result<protocol::net::HttpGot> got) {
  Node& node = nodes_[key.first];
  Document& document = documents_[key];
  const base::TimePoint now = loop_.clock().Now();
  const std::string problem =
      got.ok() ? ProblemOf(*got, document.body != nullptr) : got.error().message();
  if (!problem.empty()) {
    // A document that does not exist says nothing about the node.
    if (!got.ok() || got->status != 404) {
      node.problem = problem;
      if (now >= node.again) node.again = now + node.backoff.Next();  // once for several documents
    }
    return Answer(key, problem);
  }
  node.problem.clear();
  node.backoff.Reset();
  node.again = {};
  document.at = now;
  if (got->status == 200) {
    document.tag = std::move(got->tag);
    document.body = std::make_shared<const std::string>(std::move(got->body));
  }
  Answer(key, "");
  BoundBytes(key);
}

/// Answers all that wait for the document, whose fetch is over.
void OtherNodes::Answer(const Key& key, const std::string& problem) {
  Document& document = documents_[key];
  document.fetching = false;
  Response response{.content_type = "application/json", .fields = PageFields()};
  if (problem.empty() && document.body) {
    response.body = document.body;
    response.tag = std::to_string(base::Hash(*document.body));
  } else {
    response.status = 502;
    response.body = std::make_shared<const std::string>(api::PageProblemToJson(problem));
  }
  for (const Done& done : std::exchange(document.waiting, {})) done(response);
}

void OtherNodes::BoundBytes(const Key& kept) {
  std::size_t bytes = 0;
  std::vector<std::pair<base::TimePoint, Key>> others;
  for (const auto& [key, document] : documents_) {
    bytes += document.body ? document.body->size() : 0;
    // That of a document that is being fetched may turn out to be current.
    if (document.body && key != kept && !document.fetching)
      others.emplace_back(document.asked, key);
  }
  if (bytes <= kMostKept) return;
  std::sort(others.begin(), others.end());
  for (const auto& [asked, key] : others) {
    Document& document = documents_[key];
    bytes -= document.body->size();
    document.body = nullptr;
    if (bytes <= kMostKept) return;
  }
}

void OtherNodes::DropUnread() {
  const base::TimePoint now = loop_.clock().Now();
  std::erase_if(documents_, [now](const auto& entry) {
    return !entry.second.fetching && now - entry.second.asked >= kUnread;
  });
  timer_ = documents_.empty() ? 0 : loop_.PostAfter(kUnread, [this] { DropUnread(); });
  if (timer_ == 0) protocol::net::TrimLibrary();
}

}  // namespace penstock::adapter::pages
