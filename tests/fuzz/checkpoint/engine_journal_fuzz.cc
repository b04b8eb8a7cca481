// Fuzzes the stored journal of an engine, which a disk may have damaged, and the output of engines.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "protocol/engine/apply/journal.h"
#include "protocol/engine/engine_commands.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock::protocol::engine;  // NOLINT: all of it is under test
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto journal = DecodeJournal(text, "fuzz"); journal.ok()) {
    const std::string again = Encode(*journal);
    const auto read = DecodeJournal(again, "fuzz");
    if (!read.ok() || Encode(*read) != again) std::abort();
  }
  if (const auto version = ParseVersion(text);
      version && (version->first < 0 || version->second > 9999))
    std::abort();
  (void)HealthProblem(*RecipeOf("containerd"), 0, text);
  return 0;
}
