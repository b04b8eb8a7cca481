#include "adapter/pages/page_state_cache.h"

#include <utility>

#include "adapter/pages/page_access.h"
#include "base/core/hash.h"

namespace penstock::adapter::pages {

namespace {

using namespace std::chrono_literals;
using protocol::http::Response;

// Readers ask every five seconds; the report of a node with thousands of shares takes milliseconds.
constexpr base::Duration kStateAge = 3s;
constexpr base::Duration kHistoryAge = 10s;
constexpr base::Duration kUnreadState = 1min;

Response Json(std::string text) {
  Response response{.content_type = "application/json", .fields = PageFields()};
  response.tag = std::to_string(base::Hash(text));
  response.body = std::make_shared<const std::string>(std::move(text));
  return response;
}

}  // namespace

PageStateCache::PageStateCache(base::Executor& control, Sources sources)
    : control_(control), sources_(std::move(sources)) {}

PageStateCache::~PageStateCache() { control_.Cancel(timer_); }

void PageStateCache::Read() {
  read_at_ = control_.clock().Now();
  if (timer_ == 0) WaitUnread();
}

void PageStateCache::WaitUnread() {
  timer_ = control_.PostAfter(kUnreadState, [this] {
    timer_ = 0;
    if (control_.clock().Now() - read_at_ < kUnreadState) return WaitUnread();
    state_.reset();
    states_ = {};
    history_ = {};
  });
}

const api::PageState& PageStateCache::Current() {
  Read();
  if (!state_ || read_at_ - state_at_ >= kStateAge) {
    state_ = sources_.state();
    state_at_ = control_.clock().Now();
    states_ = {};
  }
  return *state_;
}

Response PageStateCache::State(api::PageDetail detail, const std::string& build,
                               const std::vector<std::string>& nodes) {
  const api::PageState& state = Current();
  if (nodes != nodes_) states_ = {};
  nodes_ = nodes;
  Response& made = states_[static_cast<std::size_t>(detail)];
  if (!made.body) made = Json(api::ToJson(state, detail, build, nodes));
  return made;
}

Response PageStateCache::History() {
  Read();
  if (!history_.body || read_at_ - history_at_ >= kHistoryAge) {
    history_ = Json(api::ToJson(sources_.history()));
    history_at_ = read_at_;
  }
  return history_;
}

Response PageStateCache::Holders(api::PageDetail detail, const std::string& device,
                                 std::size_t from) {
  auto json = api::PageHoldersToJson(Current(), detail, device, from);
  return json ? Json(*std::move(json)) : PageText(404, "this device does not exist\n");
}

Response PageStateCache::Queue(api::PageDetail detail, std::size_t from) {
  return Json(api::PageQueueToJson(Current(), detail, from));
}

}  // namespace penstock::adapter::pages
