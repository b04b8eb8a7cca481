// Derives links from the libraries' SONAMEs and never copies them from the root, where they may
// lead through other folders.
#include "node/cdi/find_links.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fcntl.h>

namespace penstock::node::cdi {

std::string_view NameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string FolderOf(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

std::string Below(const std::string& folder, std::string_view name) {
  return (folder == "/" ? "" : folder) + "/" + std::string(name);
}

void LibraryLinks::Add(const FoundFile& library, const std::string& soname) {
  const std::string folder = FolderOf(library.path), name(NameOf(library.path));
  const bool linked = !soname.empty() && soname != name && soname.find('/') == std::string::npos;
  if (linked)
    links_.push_back({{Below(folder, soname), name}, LeadsTo(Below(folder, soname), library)});
  if (const auto suffix = name.find(".so."); suffix != std::string::npos) {
    std::string link = Below(folder, name.substr(0, suffix + 3));
    if (LeadsTo(link, library)) links_.push_back({{std::move(link), linked ? soname : name}, true});
  }
  AddWanted(library, soname);
}

std::vector<FoundLink> LibraryLinks::Take() {
  std::ranges::sort(links_, [](const Entry& a, const Entry& b) {
    return std::tie(a.link.path, b.as_in_root, a.link.target) <
           std::tie(b.link.path, a.as_in_root, b.link.target);
  });
  std::vector<FoundLink> links;
  for (Entry& entry : links_)
    if (links.empty() || links.back().path != entry.link.path)
      links.push_back(std::move(entry.link));
  links_.clear();
  return links;
}

void LibraryLinks::AddWanted(const FoundFile& library, const std::string& soname) {
  for (const device::DriverLink& link : wanted_) {
    if (link.target != NameOf(library.path) && link.target != soname) continue;
    if (link.link.find('/') == std::string::npos) {
      links_.push_back({{Below(FolderOf(library.path), link.link), link.target}});
    } else {
      AddDeeper(library, link);
    }
  }
}

/// Where the root has it, because programs look there; else below the library's folder.
void LibraryLinks::AddDeeper(const FoundFile& library, const device::DriverLink& link) {
  const std::string beside = FolderOf(library.path);
  std::string folder = beside;
  for (const DriverTree::Folder& one : folders_)
    if (LeadsTo(Below(one.path, link.link), library)) folder = one.path;
  links_.push_back({{Below(folder, link.link),
                     folder == beside ? "../" + link.target : Below(beside, link.target)}});
}

bool LibraryLinks::LeadsTo(const std::string& path, const FoundFile& library) const {
  const auto file = tree_.Find(path, O_PATH);
  return file.ok() && file->host_path == library.host_path;
}

}  // namespace penstock::node::cdi
