// Fuzzes hooks files of mig-parted: what is accepted can be passed to a program.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "api/compat/nvidia/mig_hooks.h"

namespace compat = penstock::api::compat;

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

bool IsWord(const std::string& text) { return text.find('\0') == std::string::npos; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto all = compat::ReadMigHooks(text, "fuzz");
  if (!all.ok()) {
    Require(all.error().code() == penstock::base::Code::kInvalidArgument &&
            all.error().message().rfind("fuzz", 0) == 0);
    return 0;
  }
  for (const auto& [name, hooks] : *all) {
    Require(name == compat::kApplyStart || name == compat::kPreApplyMode ||
            name == compat::kPreApplyConfig || name == compat::kApplyExit);
    for (const compat::MigHook& hook : hooks) {
      Require(!hook.command.empty() && IsWord(hook.command) && IsWord(hook.folder));
      for (const std::string& argument : hook.arguments) Require(IsWord(argument));
      for (const auto& [variable, value] : hook.environment)
        Require(!variable.empty() && variable.find('=') == std::string::npos && IsWord(variable) &&
                IsWord(value));
    }
  }
  return 0;
}
