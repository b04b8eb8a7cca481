// What a layout needs of a driver that has to be loaded again, and what becomes of that.
#pragma once

#include <string>
#include <string_view>

namespace penstock::node::change {

/// ChangeKind::name of what loads a driver again.
inline constexpr std::string_view kReloadKind = "reload";

/// Of the devices of one vendor.
struct ReloadNeed {
  bool known = false;   ///< they are there; otherwise nothing is known of them
  bool wanted = false;  ///< a mode of one takes effect when the driver is loaded again
  bool ready = false;   ///< the driver was asked for all of these modes
  int request = 0;      ///< another number with each layout that is applied
};

struct ReloadOutlook {
  bool now = false;     ///< the agent is doing it, or about to
  std::string why_not;  ///< a clause: "GPU 3 is held by pod ml/train"; empty, and not now: the
                        ///< site's policy excludes it
};

}  // namespace penstock::node::change
