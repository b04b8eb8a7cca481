#include "api/compat/amd/layout_program.h"

#include <utility>

#include "api/compat/amd/dcm_profiles.h"
#include "api/compat/layout_programs.h"

namespace penstock::api::compat {
namespace {

Result<LayoutFile> ReadDcmLayouts(std::string_view text, std::string_view file,
                                  const ProfileNameReader&) {
  ASSIGN(DcmProfiles profiles, TranslateDcmProfiles(text, file));
  return LayoutFile{.layouts = std::move(profiles.layouts),
                    .wrong = std::move(profiles.wrong),
                    .remarks = std::move(profiles.remarks)};
}

Result<std::vector<std::string>> ReadDcmServices(std::string_view text, std::string_view file) {
  ASSIGN(DcmProfiles profiles, TranslateDcmProfiles(text, file));
  return std::move(profiles.services);
}

}  // namespace

const LayoutProgram& ModeLayoutProgram() {
  static const LayoutProgram program = {.name = "device-config-manager",
                                        .layouts = &NodeConfig::mode_profiles_file,
                                        .by_default = nullptr,
                                        .services = &NodeConfig::mode_profiles_file,
                                        .service = nullptr,
                                        .read = ReadDcmLayouts,
                                        .read_services = ReadDcmServices};
  return program;
}

}  // namespace penstock::api::compat
