// Manifests, values of charts and configurations, as `penstock migrate` reads them.
#include <cstdint>
#include <string_view>

#include "app/penstock/migrate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace app = penstock::app;
  app::Found found;
  (void)app::TakeFile({reinterpret_cast<const char*>(data), size}, "fuzz", found).ok();
  for (const app::Direction direction : {app::Direction::kToPenstock, app::Direction::kToNvidia}) {
    const app::Migration plan = app::Plan(found, direction, "");
    (void)app::ShowMigration(plan, {});
    (void)app::MigrationToJson(plan);
  }
  return 0;
}
