#include "node/change/division_journal.h"

#include <nlohmann/json.hpp>

#include "api/config/layout_fields.h"
#include "os/kept_file.h"

namespace penstock::device {

template <typename Visit, base::Of<Placement> T>
static void VisitFields(Visit& visit, T& placement) {
  visit("start", placement.start, {.most = 1 << 20});
  visit("size", placement.size, {.most = 1 << 20});
}

}  // namespace penstock::device

namespace penstock::node::partition {

template <typename Visit, base::Of<DesiredParts> T>
static void VisitFields(Visit& visit, T& parts) {
  visit("profile", parts.profile, {.filled = true});
  visit("count", parts.count, {.least = 1, .most = 1 << 20});
  visit("placement", parts.placement);
  visit("outer", parts.outer);
  visit("vacant", parts.vacant, {.if_any = true});
}

template <typename Visit, base::Of<DesiredDivision> T>
static void VisitFields(Visit& visit, T& division) {
  visit("mode", division.mode, {.if_any = true});
  visit("value", division.value, {.if_any = true});
  visit("parts", division.parts, {.if_any = true});
  visit("byMode", division.by_mode, {.if_any = true});
  visit("later", division.later, {.if_any = true});
  visit("laterValue", division.later_value, {.if_any = true});
}

}  // namespace penstock::node::partition

namespace penstock::node::change {
namespace {

constexpr int kRecordVersion = 1, kLayoutVersion = 1, kPartsVersion = 1;

/// A set as the list of its members.
template <typename Visit>
void VisitSet(Visit& visit, const char* key, auto& set) {
  std::vector<std::string> list(set.begin(), set.end());
  visit(key, list, {.if_any = true});
  if constexpr (Visit::kReads) set = {list.begin(), list.end()};
}

template <typename Visit>
void VisitRecord(Visit& visit, auto& record) {
  visit("layout", record.layout);
  visit("desired", record.desired, {.required = true});
  visit("before", record.before, {.required = true});
  visit("modeOnly", record.mode_only);
  visit("skipReset", record.skip_reset);
  visit("resets", record.resets);
  VisitSet(visit, "kept", record.kept);
}

template <typename Visit>
void VisitPartsRecord(Visit& visit, auto& record) {
  visit("create", record.create, {.if_any = true});
  VisitSet(visit, "remove", record.remove);
  VisitSet(visit, "kept", record.kept);
  visit("boot", record.boot);
}

template <typename Visit>
void VisitApplied(Visit& visit, auto& applied) {
  visit("layout", applied.layout);
  visit("source", applied.source);
  visit("label", applied.label, {.if_any = true});
  visit("modeOnly", applied.mode_only);
  visit("skipReset", applied.skip_reset);
  visit("selected", applied.selected, {.if_any = true, .most = 1 << 20});
  visit("boot", applied.boot);
  VisitSet(visit, "achieved", applied.achieved);
}

}  // namespace

std::string EncodeDivision(const DivisionRecord& record) {
  return os::EncodeKept<nlohmann::json>(kRecordVersion,
                                        [&](auto& write) { VisitRecord(write, record); });
}

base::Result<DivisionRecord> DecodeDivision(std::string_view text) {
  DivisionRecord record;
  TRY(os::DecodeKept(kRecordVersion, text, "the record of a division",
                     [&](base::StructReader& read) { VisitRecord(read, record); }));
  return record;
}

std::string EncodePartsRecord(const PartsRecord& record) {
  return os::EncodeKept<nlohmann::json>(kRecordVersion,
                                        [&](auto& write) { VisitPartsRecord(write, record); });
}

base::Result<PartsRecord> DecodePartsRecord(std::string_view text) {
  PartsRecord record;
  TRY(os::DecodeKept(kRecordVersion, text, "the record of parts",
                     [&](base::StructReader& read) { VisitPartsRecord(read, record); }));
  return record;
}

std::string EncodeOnDemandParts(const OnDemandParts& parts, std::string_view boot) {
  return os::EncodeKept<nlohmann::json>(kPartsVersion, [&](auto& write) {
    write("boot", std::string(boot));
    write("parts", parts, {.if_any = true});
  });
}

base::Result<OnDemandParts> LoadOnDemandParts(const std::string& path, std::string_view boot) {
  return os::LoadKept<OnDemandParts>(
      path, "the parts that were created on demand",
      [&](const std::string& text) -> base::Result<OnDemandParts> {
        OnDemandParts parts;
        std::string written;
        TRY(os::DecodeKept(kPartsVersion, text, path, [&](base::StructReader& read) {
          read("boot", written);
          read("parts", parts, {.if_any = true});
        }));
        return written == boot ? parts : OnDemandParts{};
      });
}

std::string EncodeAppliedLayout(const AppliedLayout& applied) {
  return os::EncodeKept<nlohmann::json>(kLayoutVersion,
                                        [&](auto& write) { VisitApplied(write, applied); });
}

base::Result<AppliedLayout> DecodeAppliedLayout(std::string_view text, std::string_view file) {
  AppliedLayout applied;
  TRY(os::DecodeKept(kLayoutVersion, text, file,
                     [&](base::StructReader& read) { VisitApplied(read, applied); }));
  return applied;
}

base::Result<AppliedLayout> LoadAppliedLayout(const std::string& path) {
  return os::LoadKept<AppliedLayout>(path, "the layout that applies", [&](const std::string& text) {
    return DecodeAppliedLayout(text, path);
  });
}

}  // namespace penstock::node::change
