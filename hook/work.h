// Limits the work that one call spends on an image's files, since an image may have any number of
// them.
#pragma once

#include <cstddef>

#include "base/core/result.h"

namespace penstock::hook {

/// A budget in steps of about a microsecond, for everything that one call does, in all folders
/// together.
class Work {
 public:
  static constexpr std::size_t kMax = 1u << 19;
  static constexpr std::size_t kOfEntry = 1;     ///< a name in a folder
  static constexpr std::size_t kOfLibrary = 32;  ///< an ELF file: opened, a handful of reads

  /// kResourceExhausted once more than kMax steps are spent.
  base::Status Spend(std::size_t steps) {
    if (steps > left_) {
      left_ = 0;
      return base::Error(base::Code::kResourceExhausted,
                         "the image has more libraries than one call processes");
    }
    left_ -= steps;
    return {};
  }

 private:
  std::size_t left_ = kMax;
};

}  // namespace penstock::hook
