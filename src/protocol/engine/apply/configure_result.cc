// Reads the journals of configured engines, for callers that only query.
#include <cstdint>

#include "base/core/hash.h"
#include "os/core/file.h"
#include "protocol/engine/apply/engine_configurator.h"
#include "protocol/engine/install_files.h"

namespace penstock::protocol::engine {
namespace {

std::string Digits(const std::string& text) {
  std::uint64_t hash = base::Hash(text);
  std::string digits;
  for (int i = 0; i < 8; ++i, hash >>= 4) digits += "0123456789abcdef"[hash & 15];
  return digits;
}

}  // namespace

std::string JournalPath(const EngineInstall& install, const std::string& state_dir) {
  const auto recipe = RecipeOf(install.name);
  const bool usual = recipe.ok() && recipe->config == install.config;
  return state_dir + "/engines/" + install.name + (usual ? "" : "-" + Digits(install.config)) +
         ".json";
}

base::Result<std::vector<EngineInstall>> ConfiguredInstalls(const std::string& state_dir) {
  std::vector<EngineInstall> installs;
  const std::string folder = state_dir + "/engines";
  const auto names = os::ListDirectory(folder);
  if (!names.ok() && names.error().code() != Code::kNotFound) return names.error();
  for (const std::string& name : names.value_or({})) {
    if (!name.ends_with(".json")) continue;
    ASSIGN(const Journal journal, LoadJournal(folder + "/" + name));
    ASSIGN(EngineInstall install, RecipeOf(journal.install.name));
    if (install.config != journal.install.config) install.style = ConfigStyle::kPlain;
    install.config = journal.install.config;
    install.drop_in = journal.install.drop_in;
    install.socket = journal.install.socket;
    install.program = journal.install.program;
    install.unit = journal.install.unit;
    installs.push_back(std::move(install));
  }
  return installs;
}

}  // namespace penstock::protocol::engine
