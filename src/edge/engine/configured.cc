// What is remembered of engines that were configured, for those who only ask.
#include <cstdint>

#include "base/core/hash.h"
#include "edge/engine/configuring.h"
#include "edge/engine/site_files.h"
#include "os/core/file.h"

namespace penstock::edge::engine {
namespace {

using base::Code;

std::string Digits(const std::string& text) {
  std::uint64_t hash = base::Hash(text);
  std::string digits;
  for (int i = 0; i < 8; ++i, hash >>= 4) digits += "0123456789abcdef"[hash & 15];
  return digits;
}

}  // namespace

std::string JournalPath(const Site& site, const std::string& state_dir) {
  const auto recipe = RecipeOf(site.name);
  const bool usual = recipe.ok() && recipe->config == site.config;
  return state_dir + "/engines/" + site.name + (usual ? "" : "-" + Digits(site.config)) + ".json";
}

base::Result<std::vector<Site>> ConfiguredSites(const std::string& state_dir) {
  std::vector<Site> sites;
  const std::string folder = state_dir + "/engines";
  const auto names = os::ListDirectory(folder);
  if (!names.ok() && names.error().code() != Code::kNotFound) return names.error();
  for (const std::string& name : names.value_or({})) {
    if (!name.ends_with(".json")) continue;
    ASSIGN(const Journal journal, LoadJournal(folder + "/" + name));
    ASSIGN(Site site, RecipeOf(journal.site.name));
    if (site.config != journal.site.config) site.manner = Manner::kPlain;
    site.config = journal.site.config;
    site.drop_in = journal.site.drop_in;
    site.socket = journal.site.socket;
    site.program = journal.site.program;
    site.unit = journal.site.unit;
    sites.push_back(std::move(site));
  }
  return sites;
}

base::Result<StandingOf> AskStanding(const Site& site, const std::string& state_dir) {
  ASSIGN(const ConfigFiles files, ConfigFiles::Open(site.root));
  ASSIGN(const Journal journal, LoadJournal(JournalPath(site, state_dir)));
  Disk disk;
  for (const Target& file : journal.record.files) { ASSIGN(disk[file.path], files.Read(file.path)); }
  return Stands(disk, journal.record);
}

}  // namespace penstock::edge::engine
