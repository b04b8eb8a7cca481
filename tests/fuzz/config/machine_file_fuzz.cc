// Fuzzes machine files and model catalogues of simulated machines, as written by users.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "sim/compile.h"
#include "sim/machine.h"

namespace {

namespace sim = penstock::sim;

constexpr std::string_view kModels =
    "models:\n  t4: {name: Tesla T4, brand: nvidia, architecture: turing, computeCapability: "
    "\"7.5\", pciId: 0x1eb8, memory: {total: "
    "15360, "
    "reserved: 393}, power: {default: 70}, clocks: {sm: 1590, memory: 5001}, nvlink: {count: 18, "
    "version: 4, mbps: 25000}}\n";

template <typename T>
void CheckError(const penstock::base::Result<T>& read) {
  if (!read.ok() && (read.error().code() != penstock::base::Code::kInvalidArgument ||
                     read.error().message().rfind("fuzz", 0) != 0))
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const sim::Catalogue& catalogue =
      *new sim::Catalogue(*sim::ReadCatalogue(kModels, "models"));
  static SimState& state = *new SimState;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckError(sim::ReadCatalogue(text, "fuzz"));
  const auto machine = sim::ReadMachine(text, "fuzz", catalogue);
  CheckError(machine);
  if (!machine.ok()) return 0;
  // An accepted machine compiles to a state that every reader accepts.
  sim::Compile(*machine, catalogue, {}, state);
  if (SimCheckState(&state, sizeof state) != kSimStateOk) std::abort();
  return 0;
}
