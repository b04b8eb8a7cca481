// See sampling_fields.h. What drivers gave by calls of their own before there was a field for it is asked for so where the field is
// refused.
#include "vendor/nvidia/sampling_fields.h"

#include <algorithm>

namespace penstock::vendor::nvidia {
namespace {

/// No limit is documented; this many have been seen to work, and on NVLink 5 there is more than that to ask.
constexpr std::size_t kMostFields = 256;

FieldAnswer Read(const abi::FieldValue& field) {
  FieldAnswer answer;
  answer.never = SaysNever(field.status);
  if (field.status != abi::kSuccess) return answer;
  const auto whole = [&](long long value) {
    answer.number = value < 0 ? device::Number(static_cast<double>(value)) : device::Number(static_cast<std::uint64_t>(value));
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
bool AskEcc(Questions& questions, unsigned field, unsigned long long& count) {
  return questions.Ask(questions.nvml().ecc_errors, (field + 1) % 2, (field - 3) / 2, &count);
}

bool AskRemapped(Questions& questions, unsigned field, unsigned long long& count) {
  unsigned rows[4] = {};
  const bool answered = questions.Ask(questions.nvml().remapped_rows, &rows[0], &rows[1], &rows[2], &rows[3]);
  count = rows[field - 142];
  return answered;
}

/// The calls that gave a field's value before there was the field.
bool AskCall(Questions& questions, unsigned field, unsigned long long& count) {
  unsigned number = 0;
  switch (field) {
    case 3:
    case 4:
    case 5:
    case 6: return AskEcc(questions, field, count);
    case 83: return questions.Ask(questions.nvml().energy, &count);
    case 94: {
      const bool answered = questions.Ask(questions.nvml().pcie_replays, &number);
      count = number;
      return answered;
    }
    case 142:
    case 143:
    case 144:
    case 145: return AskRemapped(questions, field, count);
    default: return false;
  }
}

bool HasCall(unsigned field) { return (field >= 3 && field <= 6) || field == 83 || field == 94 || (field >= 142 && field <= 145); }

void GiveByCall(Taking& taking, const Wanted& wanted) {
  unsigned long long count = 0;
  if (taking.Answered(AskCall(taking.questions, wanted.way.number, count), {&wanted, 1})) taking.Give(wanted.id, std::uint64_t{count});
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

void FieldBatch::Ask(Questions& questions, std::size_t first, std::size_t count) {
  const auto& function = questions.nvml().field_values;
  if (questions.Ask(function, static_cast<int>(count), fields_.data() + first)) {
    for (std::size_t i = first; i < first + count; ++i) questions.Note(fields_[i].status, function.name);
    return;
  }
  const abi::Return refused = questions.last();
  // It may be one of them alone that this driver will not hear of.
  if (refused == abi::kInvalidArgument && count > 1) {
    for (std::size_t i = first; i < first + count; ++i) Ask(questions, i, 1);
    return;
  }
  for (std::size_t i = first; i < first + count; ++i) fields_[i].status = refused;
}

void FieldBatch::Run(Questions& questions) {
  for (std::size_t done = 0; done < fields_.size(); done += kMostFields) Ask(questions, done, std::min(kMostFields, fields_.size() - done));
}

FieldAnswer FieldBatch::At(std::size_t place) const { return Read(fields_[place]); }

FieldQuantities::FieldQuantities(Taking& taking, FieldBatch& batch) : taking_(taking), batch_(batch) {
  for (const Wanted& wanted : taking.Of(Call::kField)) {
    if (taking.gpu.calls.contains(wanted.id)) {
      GiveByCall(taking, wanted);
    } else {
      const unsigned field = wanted.way.number;
      const unsigned number = IsReasonField(field) ? taking.gpu.first_reason_field + field - kFirstReasonField : field;
      asked_.push_back({wanted, batch.Add(number), 1, false});
    }
  }
  const auto of_links = taking.Of(Call::kFieldOfEachLink);
  const std::vector<unsigned>* links = of_links.empty() ? nullptr : taking.Links();
  if (links == nullptr) return;
  if (links->empty()) taking.Missing(of_links);
  for (const Wanted& wanted : of_links) {
    Asked asked{wanted, 0, links->size(), true};
    for (const unsigned link : *links) asked.place = batch.Add(wanted.way.number, link);
    asked.place -= links->size() - 1;
    if (!links->empty()) asked_.push_back(asked);
  }
}

void FieldQuantities::GiveLinks(const Asked& asked) {
  bool never = true;
  for (std::size_t i = 0; i < asked.count; ++i) {
    const FieldAnswer answer = batch_.At(asked.place + i);
    never = never && answer.never;
    if (answer.number) taking_.Give(asked.wanted.id, *answer.number, static_cast<int>((*taking_.gpu.links)[i]));
  }
  if (never) taking_.Missing(asked.wanted.id);
}

void FieldQuantities::Give() {
  for (const Asked& asked : asked_) {
    if (asked.each_link) {
      GiveLinks(asked);
      continue;
    }
    const FieldAnswer answer = batch_.At(asked.place);
    if (answer.number) taking_.Give(asked.wanted.id, *answer.number);
    if (!answer.never) continue;
    if (HasCall(asked.wanted.way.number)) {
      taking_.gpu.calls.insert(asked.wanted.id);
      GiveByCall(taking_, asked.wanted);
    } else {
      taking_.Missing(asked.wanted.id);
    }
  }
}

}  // namespace penstock::vendor::nvidia
