// Fuzzes what a container engine reports about itself over CRI: name, version and configuration,
// one per line.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "protocol/engine/cri/engine.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock::protocol::engine::cri;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto name = text.find('\n');
  const auto version = name == std::string_view::npos ? name : text.find('\n', name + 1);
  if (version == std::string_view::npos) return 0;
  const EngineAbilities engine = FromAnswers(
      text.substr(0, name), text.substr(name + 1, version - name - 1), text.substr(version + 1));
  if (engine.why.empty()) std::abort();  // every decision has a reason
  if (engine.cdi_by_field && engine.cdi == Cdi::kNever) std::abort();
  for (const auto& folder : engine.cdi_folders)
    if (!ReadsFolder(engine, folder)) std::abort();
  return 0;
}
