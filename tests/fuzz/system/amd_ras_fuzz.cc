// Fuzzes the texts in which AMD's driver reports memory errors.
#include <cstdint>
#include <string>
#include <string_view>

#include "../oracle.h"
#include "backend/amd/ras.h"

namespace amd = penstock::backend::amd;
using penstock::fuzz::Require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = penstock::fuzz::Text(data, size);
  if (const auto counts = amd::ParseRasCounts(text)) {
    const std::string again = "ue: " + std::to_string(counts->uncorrectable) +
                              "\nce: " + std::to_string(counts->correctable) +
                              "\nde: " + std::to_string(counts->deferred) + "\n";
    Require(amd::ParseRasCounts(again) == counts);
    // All ones are no count.
    for (const auto count : {counts->uncorrectable, counts->correctable, counts->deferred})
      Require(count != ~std::uint64_t{0});
    // A line that cannot be read changes nothing.
    Require(amd::ParseRasCounts(std::string(text) + "\nue: many\nxe: 7\nue: -1\n") == counts);
  }
  const auto pages = amd::ParseBadPages(text);
  Require(pages.retired >= 0 && pages.pending >= 0 && pages.failed >= 0);
  amd::BadPages more = pages;
  ++more.pending;
  Require(amd::ParseBadPages(std::string(text) + "\n0x00000001 : 0x00001000 : P\n") == more);
  return 0;
}
