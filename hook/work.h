// What one call may do with an image's files before it stops: an image may have any number of them.
#pragma once

#include <cstddef>

#include "base/core/result.h"

namespace penstock::hook {

/// Steps of a microsecond or so, for everything that one call does, whichever folder it is in.
class Work {
 public:
  static constexpr std::size_t kMost = 1u << 19;
  static constexpr std::size_t kOfEntry = 1;     ///< a name in a folder
  static constexpr std::size_t kOfLibrary = 32;  ///< an ELF file: opened, a handful of reads

  /// kResourceExhausted once there were more than `most` steps.
  base::Status Spend(std::size_t steps) {
    if (steps > left_) {
      left_ = 0;
      return base::Error(base::Code::kResourceExhausted, "the image has more libraries than one call looks at");
    }
    left_ -= steps;
    return {};
  }

 private:
  std::size_t left_ = kMost;
};

}  // namespace penstock::hook
