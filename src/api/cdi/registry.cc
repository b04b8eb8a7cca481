// Merges the specifications of several folders as the engines' cache does (pkg/cdi/cache.go).
#include "api/cdi/registry.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/core/strings.h"

namespace penstock::api::cdi {

namespace {

constexpr std::size_t kMaxNamed = 4;  // devices named in one sentence

/// "a, b, c, d and 12 more".
std::string Some(const std::vector<std::string>& names) {
  if (names.size() <= kMaxNamed) return base::Join(names, ", ");
  return base::Join(std::span(names).first(kMaxNamed), ", ") + " and " +
         std::to_string(names.size() - kMaxNamed) + " more";
}

/// Returns one sentence about an invalid file: its first problem, and how to see the others.
std::string WhyInvalid(const std::string& file, const base::Error& error) {
  const auto lines = base::Split(error.message(), '\n');
  std::string text =
      lines.front() + "; container engines ignore the whole file until this is fixed";
  if (lines.size() > 1)
    text += " (" + std::to_string(lines.size() - 1) + " more: penstock cdi validate " + file + ")";
  return text;
}

}  // namespace

Registry::Registry(std::vector<SpecFile> files) {
  std::ranges::stable_sort(files, [](const SpecFile& a, const SpecFile& b) {
    return std::tie(a.priority, a.path) < std::tie(b.priority, b.path);
  });
  Pairs conflicts, hidden;
  for (const SpecFile& file : files) {
    if (!file.text.ok()) {
      problems_.push_back(file.text.error().message() +
                          "; its devices are unavailable until it can be read");
      continue;
    }
    auto spec = Parse(*file.text, file.path);
    if (spec.ok()) {
      Add(file.path, file.priority, std::make_shared<const Spec>(*std::move(spec)), conflicts,
          hidden);
    } else {
      problems_.push_back(WhyInvalid(file.path, spec.error()));
    }
  }
  for (const auto& [pair, names] : conflicts)
    problems_.push_back(pair.first + " and " + pair.second + " both define " + Some(names) +
                        ", so that no container can use " + (names.size() == 1 ? "it" : "them") +
                        "; remove one of the files");
  for (const auto& [pair, names] : hidden)
    problems_.push_back(pair.second + " hides " + Some(names) + " of " + pair.first +
                        "; remove the unwanted one");
}

void Registry::Add(const std::string& file, int priority, const std::shared_ptr<const Spec>& spec,
                   Pairs& conflicts, Pairs& hidden) {
  for (std::size_t i = 0; i < spec->devices.size(); ++i) {
    const std::string name = spec->kind + "=" + spec->devices[i].name;
    const auto [found, is_new] = entries_.try_emplace(name, Entry{spec, i, file, priority, ""});
    if (is_new) continue;
    Entry& entry = found->second;
    if (entry.priority == priority) {
      conflicts[{entry.file, file}].push_back(name);
      entry.rival = file;
    } else if (entry.rival.empty()) {
      hidden[{entry.file, file}].push_back(name);
      entry = {spec, i, file, priority, ""};
    }
  }
}

std::vector<Registry::Listed> Registry::devices() const {
  std::vector<Listed> listed;
  for (const auto& [name, entry] : entries_)
    if (entry.rival.empty()) listed.push_back({name, entry.file});
  return listed;
}

std::string Registry::WhyNot(const std::string& name) const {
  const auto parsed = ParseName(name);
  if (!parsed) return "is not a qualified name (vendor/class=device)";
  if (const auto found = entries_.find(name); found != entries_.end())
    return "is defined by both " + found->second.file + " and " + found->second.rival +
           "; remove one of them";
  std::vector<std::string> others;
  for (const auto& [other, entry] : entries_)
    if (entry.spec->kind == parsed->kind) others.push_back(entry.spec->devices[entry.device].name);
  if (others.empty()) return "no specification of this kind was found";
  return parsed->kind + " has " + Some(others);
}

base::Result<CdiEdits> Registry::Inject(std::span<const std::string> qualified_names) const {
  CdiEdits edits;
  std::set<const Spec*> joined;
  std::vector<std::string> missing;
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  const auto join = [&](const CdiEdits& more) {
    append(edits.env, more.env);
    append(edits.nodes, more.nodes);
    append(edits.net_devices, more.net_devices);
    append(edits.hooks, more.hooks);
    append(edits.mounts, more.mounts);
    if (more.intel_rdt) edits.intel_rdt = more.intel_rdt;
    append(edits.additional_gids, more.additional_gids);
  };
  for (const std::string& name : qualified_names) {
    const auto found = entries_.find(name);
    if (found == entries_.end() || !found->second.rival.empty()) {
      missing.push_back("\"" + name + "\" (" + WhyNot(name) + ")");
      continue;
    }
    const Spec& spec = *found->second.spec;
    if (joined.insert(&spec).second) join(spec.edits);
    join(spec.devices[found->second.device].edits);
  }
  if (!missing.empty())
    return base::Error(base::Code::kNotFound,
                       "there is no CDI device " + base::Join(missing, ", nor "));
  return edits;
}

}  // namespace penstock::api::cdi
