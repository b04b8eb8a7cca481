#include "api/compat/layout_programs.h"

#include <algorithm>

#include "api/compat/amd/layout_program.h"
#include "api/compat/nvidia/layout_program.h"

namespace penstock::api::compat {

std::span<const LayoutProgram* const> LayoutPrograms() {
  static const LayoutProgram* const kPrograms[] = {&ProfileLayoutProgram(), &ModeLayoutProgram()};
  return kPrograms;
}

const LayoutProgram* FindLayoutProgram(std::string_view name) {
  const auto programs = LayoutPrograms();
  const auto found = std::ranges::find(programs, name, [](const auto* one) { return one->name; });
  return found == programs.end() ? nullptr : *found;
}

}  // namespace penstock::api::compat
