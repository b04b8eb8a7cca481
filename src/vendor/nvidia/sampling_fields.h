// NVML's field values, asked for in one call.
#pragma once

#include <optional>
#include <vector>

#include "vendor/nvidia/sampling_taking.h"

namespace penstock::vendor::nvidia {

struct FieldAnswer {
  std::optional<device::Number> number;
  bool never = false;   ///< this driver does not have this field of this device
  bool narrow = false;  ///< of 32 bits
};

/// Fields of one device: collected, asked for, read.
class FieldBatch {
 public:
  /// The place of its answer.
  std::size_t Add(unsigned field, unsigned scope = 0);
  void Run(Questions& questions);
  FieldAnswer At(std::size_t place) const;

 private:
  void Ask(Questions& questions, std::size_t first, std::size_t count);
  std::vector<abi::FieldValue> fields_;
};

/// The quantities that are fields and nothing else.
class FieldQuantities {
 public:
  FieldQuantities(Taking& taking, FieldBatch& batch);

  /// After the batch has run.
  void Give();

 private:
  struct Asked {
    Wanted wanted;
    std::size_t place = 0, count = 0;  // one answer for each link, or one
    bool each_link = false;
  };
  void GiveLinks(const Asked& asked);

  Taking& taking_;
  const FieldBatch& batch_;
  std::vector<Asked> asked_;
};

}  // namespace penstock::vendor::nvidia
