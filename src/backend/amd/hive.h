// Resets of GPUs that xGMI links, which amdgpu resets together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "backend/amd/machine.h"
#include "device/model.h"

namespace penstock::backend::amd {

/// Which GPUs of each hive are being reset, as their last readings said.
class HiveResets {
 public:
  /// The evidence that a GPU is being reset, itself or with its hive, of which it names the one
  /// that was seen first; nothing: it is not. `in_reset`: whether its own files say so. Files of
  /// others are not asked: the one whose file hangs must be the one that is read.
  std::optional<device::Evidence> Update(const AmdGpu& gpu, bool in_reset);

 private:
  struct Hive {
    std::string first;
    std::set<std::string> in_reset;  // by id
  };
  std::map<std::uint64_t, Hive> hives_;  // by id, those in a reset
};

}  // namespace penstock::backend::amd
