// Fuzzes edits of container engines' configuration files: an edit preserves everything else, a
// second edit changes nothing, and an edit can be reverted.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "protocol/engine/apply/change.h"
#include "protocol/engine/text/line_diff.h"

namespace {

using namespace penstock::protocol::engine;  // NOLINT: all of it is under test

void Check(bool holds) {
  if (!holds) std::abort();
}

void Edit(FileFormat format, const std::string& text) {
  const auto document = Read(format, text, "fuzz");
  if (!document.ok()) return Check(document.error().message().rfind("fuzz", 0) == 0);
  const std::vector<Setting> settings = {
      {{"plugins", "io.containerd.grpc.v1.cri", "enable_cdi"}, Flag(true)},
      {{"plugins", "io.containerd.grpc.v1.cri", "containerd", "runtimes", "n", "options", "B"},
       Text("/x")},
      {{"features", "cdi"}, Flag(true)},
      {{"imports"}, Texts({"/x/*.toml"})}};
  const auto made = Apply(format, text, "fuzz", settings);
  if (!made.ok()) return Check(made.error().code() == penstock::base::Code::kFailedPrecondition);
  Tree wanted = ToTree(*document);
  for (const Setting& setting : settings) Put(wanted, setting);
  Check(Compare(wanted, ToTree(*Read(format, *made, "fuzz"))).empty());
  Check(*Apply(format, *made, "fuzz", settings) == *made);
  const Target target{
      .path = "fuzz", .format = format, .before = text, .after = *made, .settings = settings};
  Check(**Revert(target, *made) == text);
  Check(Unified("fuzz", text, *made).empty() == (text == *made));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (size > 16u << 10) return 0;
  Edit(FileFormat::kToml, text);
  Edit(FileFormat::kJson, text);
  // The input as an administrator's later version of a file that Penstock wrote.
  const Target ours{
      .path = "fuzz", .after = "[a]\nb = true\n", .settings = {{{"a", "b"}, Flag(true)}}};
  (void)Revert(ours, text);
  (void)FindStanding({{"fuzz", text}}, {{}, {ours}});
  return 0;
}
