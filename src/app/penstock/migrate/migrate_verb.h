// `penstock migrate`: reads a cluster or a machine and prints a migration plan.
#pragma once

#include <string>

#include "analysis/migrate/nvidia/migrate.h"
#include "app/penstock/common/table.h"
#include "app/penstock/common/verbs.h"

namespace penstock::app {

std::string ShowMigration(const analysis::Migration& migration, const Style& style);
std::string MigrationToJson(const analysis::Migration& migration);

}  // namespace penstock::app
