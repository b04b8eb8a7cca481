// Reads NVML's field values, many in one call.
#pragma once

#include <optional>
#include <vector>

#include "backend/nvidia/sampling/sample_builder.h"

namespace penstock::backend::nvidia {

struct FieldReading {
  std::optional<device::Number> number;
  bool never = false;   ///< this driver does not have this field for this device
  bool narrow = false;  ///< a 32-bit value
};

/// The fields of one device: collected, requested, read.
class FieldBatch {
 public:
  /// Adds a field; returns the index of its answer.
  std::size_t Add(unsigned field, unsigned scope = 0);
  void Run(NvmlDevice& nvml_device);
  FieldReading At(std::size_t place) const;

 private:
  void Call(NvmlDevice& nvml_device, std::size_t first, std::size_t count);
  std::vector<abi::FieldValue> fields_;
};

/// The quantities that are plain fields.
class FieldQuantities {
 public:
  FieldQuantities(SampleBuilder& builder, FieldBatch& batch);

  /// Call it after the batch has run.
  void Give();

 private:
  struct RequestedField {
    Wanted wanted;
    std::size_t place = 0, count = 0;  // one answer per link, or one
    bool each_link = false;
  };
  void GiveLinks(const RequestedField& entry);

  SampleBuilder& builder_;
  const FieldBatch& batch_;
  std::vector<RequestedField> requested_;
};

}  // namespace penstock::backend::nvidia
