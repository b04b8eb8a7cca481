// Fuzzes manifests, chart values and configurations as input of `penstock migrate`.
#include <cstdint>
#include <string_view>

#include "analysis/migrate/nvidia/migrate.h"
#include "app/penstock/migrate/migrate_verb.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace analysis = penstock::analysis;
  namespace app = penstock::app;
  analysis::Found found;
  (void)analysis::TakeFile({reinterpret_cast<const char*>(data), size}, "fuzz", found).ok();
  for (const analysis::Direction direction :
       {analysis::Direction::kToPenstock, analysis::Direction::kToNvidia}) {
    const analysis::Migration plan = analysis::Plan(found, direction, "");
    (void)app::ShowMigration(plan, {});
    (void)app::MigrationToJson(plan);
  }
  return 0;
}
