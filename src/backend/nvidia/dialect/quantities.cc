// Assembles the table of quantities. Sources: NVIDIA's nvml.h; for the call behind each of DCGM's
// fields: DCGM, dcgmlib/src/DcgmCacheManager.cpp and DcgmGpmManager.cpp.
#include "backend/nvidia/dialect/quantities.h"

#include <array>

#include "backend/nvidia/dialect/quantity_rows_board.h"
#include "backend/nvidia/dialect/quantity_rows_errors.h"
#include "backend/nvidia/dialect/quantity_rows_links.h"
#include "backend/nvidia/dialect/quantity_rows_profiling.h"

namespace penstock::backend::nvidia {
namespace {

constexpr std::span<const QuantityRow> kRows[] = {kBoardRows, kErrorRows, kLinkRows,
                                                  kProfilingRows};
constexpr std::size_t kCount = std::size(kBoardRows) + std::size(kErrorRows) +
                               std::size(kLinkRows) + std::size(kProfilingRows);

struct Table {
  std::array<device::Quantity, kCount> quantities;
  std::array<NvmlQuery, kCount> queries;
};

constexpr Table Join() {
  Table table;
  std::size_t next = 0;
  for (const auto rows : kRows)
    for (const QuantityRow& row : rows) {
      table.quantities[next] = row.quantity;
      table.queries[next++] = row.query;
    }
  return table;
}

constexpr Table kTable = Join();

}  // namespace

std::span<const device::Quantity> TheQuantities() { return kTable.quantities; }

NvmlQuery QueryOf(device::QuantityId id) { return kTable.queries[id]; }

std::optional<device::QuantityId> FindQuantity(std::string_view key) {
  for (std::size_t i = 0; i < kCount; ++i)
    if (kTable.quantities[i].key == key) return static_cast<device::QuantityId>(i);
  return std::nullopt;
}

}  // namespace penstock::backend::nvidia
