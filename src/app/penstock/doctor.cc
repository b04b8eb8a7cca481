// `penstock runtime doctor`.
#include "app/penstock/verbs.h"

namespace penstock::app {

void AddRuntimeDoctor(CLI::App&, const Common&, int&) {}

}  // namespace penstock::app
