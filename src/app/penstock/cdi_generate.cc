// `penstock cdi generate`.
#include "app/penstock/verbs.h"

namespace penstock::app {

void AddCdiGenerate(CLI::App&, const Common&, int&) {}

}  // namespace penstock::app
