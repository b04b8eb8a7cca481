#include "api/compat/nvidia/layout_program.h"

#include <utility>

#include "api/compat/layout_programs.h"
#include "api/compat/nvidia/gpu_clients.h"

namespace penstock::api::compat {
namespace {

Result<LayoutFile> ReadMigLayouts(std::string_view text, std::string_view file,
                                  const ProfileNameReader& read_profile) {
  ASSIGN(Layouts layouts, TranslateMigParted(text, file, read_profile));
  return LayoutFile{.layouts = std::move(layouts), .wrong = {}, .remarks = {}};
}

}  // namespace

const LayoutProgram& ProfileLayoutProgram() {
  static const LayoutProgram program = {.name = "mig-manager",
                                        .layouts = &NodeConfig::layouts_file,
                                        .by_default = &NodeConfig::default_layout,
                                        .services = &NodeConfig::client_services_file,
                                        .service = &NodeServices::layouts,
                                        .read = ReadMigLayouts,
                                        .read_services = TranslateGpuClients};
  return program;
}

}  // namespace penstock::api::compat
