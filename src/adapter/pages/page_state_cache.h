// Keeps what the page at / reads of this node, so that many readers cost as much as one.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/page_state.h"
#include "base/executor.h"
#include "protocol/http/response.h"

namespace penstock::adapter::pages {

/// On the control executor. Keeps nothing that was not read for a minute.
class PageStateCache {
 public:
  struct Sources {
    std::function<api::PageState()> state;
    std::function<api::PageHistory()> history;
  };
  PageStateCache(base::Executor& control, Sources sources);
  ~PageStateCache();

  /// All of these are at most a few seconds old. `nodes`: as in api::ToJson.
  protocol::http::Response State(api::PageDetail detail, const std::string& build,
                                 const std::vector<std::string>& nodes);
  protocol::http::Response History();
  /// 404 for a device that does not exist.
  protocol::http::Response Holders(api::PageDetail detail, const std::string& device,
                                   std::size_t from);
  protocol::http::Response Queue(api::PageDetail detail, std::size_t from);

 private:
  const api::PageState& Current();
  void Read();
  void WaitUnread();

  base::Executor& control_;
  const Sources sources_;
  std::optional<api::PageState> state_;
  base::TimePoint state_at_{}, history_at_{}, read_at_{};
  std::array<protocol::http::Response, 2> states_;  // by detail; without a body: not made yet
  std::vector<std::string> nodes_;                  // in `states_`
  protocol::http::Response history_;
  base::TimerId timer_ = 0;
};

}  // namespace penstock::adapter::pages
