// A value for which drivers had a call before they had a field is requested by that call if the
// field is refused.
#include "backend/nvidia/sampling/sampling_fields.h"

#include <algorithm>

namespace penstock::backend::nvidia {
namespace {

/// No limit is documented. This many are known to work; NVLink 5 needs more than that.
constexpr std::size_t kMaxFields = 256;

FieldReading Read(const abi::FieldValue& field) {
  FieldReading answer;
  answer.never = IsPermanent(field.status);
  if (field.status != abi::kSuccess) return answer;
  const auto whole = [&](long long value) {
    answer.number = value < 0 ? device::Number(static_cast<double>(value))
                              : device::Number(static_cast<std::uint64_t>(value));
  };
  switch (field.type) {
    case abi::kDouble: answer.number = field.value.d; break;
    case abi::kUnsignedInt: answer.number = std::uint64_t{field.value.ui}; break;
    case abi::kSignedInt: whole(field.value.si); break;
    case abi::kUnsignedLong:
    case abi::kUnsignedLongLong: answer.number = std::uint64_t{field.value.ull}; break;
    case abi::kSignedLongLong: whole(field.value.sll); break;
  }
  answer.narrow = field.type == abi::kUnsignedInt || field.type == abi::kSignedInt;
  return answer;
}

/// nvmlMemoryErrorType_t and nvmlEccCounterType_t of the fields 3 to 6.
bool ReadEcc(NvmlDevice& nvml_device, unsigned field, unsigned long long& count) {
  return nvml_device.Call(nvml_device.nvml().ecc_errors, (field + 1) % 2, (field - 3) / 2, &count);
}

bool ReadRemapped(NvmlDevice& nvml_device, unsigned field, unsigned long long& count) {
  unsigned rows[4] = {};
  const bool answered =
      nvml_device.Call(nvml_device.nvml().remapped_rows, &rows[0], &rows[1], &rows[2], &rows[3]);
  count = rows[field - 142];
  return answered;
}

/// The calls that returned a field's value before the field existed.
bool ReadCall(NvmlDevice& nvml_device, unsigned field, unsigned long long& count) {
  unsigned number = 0;
  switch (field) {
    case 3:
    case 4:
    case 5:
    case 6: return ReadEcc(nvml_device, field, count);
    case 83: return nvml_device.Call(nvml_device.nvml().energy, &count);
    case 94: {
      const bool answered = nvml_device.Call(nvml_device.nvml().pcie_replays, &number);
      count = number;
      return answered;
    }
    case 142:
    case 143:
    case 144:
    case 145: return ReadRemapped(nvml_device, field, count);
    default: return false;
  }
}

bool HasCall(unsigned field) {
  return (field >= 3 && field <= 6) || field == 83 || field == 94 || (field >= 142 && field <= 145);
}

void GiveByCall(SampleBuilder& builder, const Wanted& wanted) {
  unsigned long long count = 0;
  if (builder.Answered(ReadCall(builder.nvml_device, wanted.query.number, count), {&wanted, 1}))
    builder.Give(wanted.id, std::uint64_t{count});
}

}  // namespace

std::size_t FieldBatch::Add(unsigned field, unsigned scope) {
  abi::FieldValue value{};
  value.field = field;
  value.scope = scope;
  value.status = abi::kNoData;
  fields_.push_back(value);
  return fields_.size() - 1;
}

void FieldBatch::Call(NvmlDevice& nvml_device, std::size_t first, std::size_t count) {
  const auto& function = nvml_device.nvml().field_values;
  if (nvml_device.Call(function, static_cast<int>(count), fields_.data() + first)) {
    for (std::size_t i = first; i < first + count; ++i)
      nvml_device.Note(fields_[i].status, function.name);
    return;
  }
  const abi::Return refused = nvml_device.last();
  // The driver may refuse the call because of a single field.
  if (refused == abi::kInvalidArgument && count > 1) {
    for (std::size_t i = first; i < first + count; ++i) Call(nvml_device, i, 1);
    return;
  }
  for (std::size_t i = first; i < first + count; ++i) fields_[i].status = refused;
}

void FieldBatch::Run(NvmlDevice& nvml_device) {
  for (std::size_t done = 0; done < fields_.size(); done += kMaxFields)
    Call(nvml_device, done, std::min(kMaxFields, fields_.size() - done));
}

FieldReading FieldBatch::At(std::size_t place) const { return Read(fields_[place]); }

FieldQuantities::FieldQuantities(SampleBuilder& builder, FieldBatch& batch)
    : builder_(builder), batch_(batch) {
  for (const Wanted& wanted : builder.Of(NvmlCall::kField)) {
    if (builder.gpu.calls.contains(wanted.id)) {
      GiveByCall(builder, wanted);
    } else {
      const unsigned field = wanted.query.number;
      const unsigned number =
          IsReasonField(field) ? builder.gpu.first_reason_field + field - kFirstReasonField : field;
      requested_.push_back({wanted, batch.Add(number), 1, false});
    }
  }
  const auto of_links = builder.Of(NvmlCall::kFieldOfEachLink);
  const std::vector<unsigned>* links = of_links.empty() ? nullptr : builder.Links();
  if (links == nullptr) return;
  if (links->empty()) builder.Missing(of_links);
  for (const Wanted& wanted : of_links) {
    RequestedField entry{wanted, 0, links->size(), true};
    for (const unsigned link : *links) entry.place = batch.Add(wanted.query.number, link);
    entry.place -= links->size() - 1;
    if (!links->empty()) requested_.push_back(entry);
  }
}

void FieldQuantities::GiveLinks(const RequestedField& entry) {
  bool never = true;
  for (std::size_t i = 0; i < entry.count; ++i) {
    const FieldReading answer = batch_.At(entry.place + i);
    never = never && answer.never;
    if (answer.number)
      builder_.Give(entry.wanted.id, *answer.number, static_cast<int>((*builder_.gpu.links)[i]));
  }
  if (never) builder_.Missing(entry.wanted.id);
}

void FieldQuantities::Give() {
  for (const RequestedField& entry : requested_) {
    if (entry.each_link) {
      GiveLinks(entry);
      continue;
    }
    const FieldReading answer = batch_.At(entry.place);
    if (answer.number) builder_.Give(entry.wanted.id, *answer.number);
    if (!answer.never) continue;
    if (HasCall(entry.wanted.query.number)) {
      builder_.gpu.calls.insert(entry.wanted.id);
      GiveByCall(builder_, entry.wanted);
    } else {
      builder_.Missing(entry.wanted.id);
    }
  }
}

}  // namespace penstock::backend::nvidia
