#include "api/config/layouts.h"

#include <algorithm>

namespace penstock::api {

const Layout* Layouts::Find(std::string_view name) const {
  const auto found = std::ranges::find(layouts, name, &Layout::name);
  return found == layouts.end() ? nullptr : &*found;
}

std::vector<std::string> Layouts::names() const {
  std::vector<std::string> names;
  for (const Layout& layout : layouts) names.push_back(layout.name);
  return names;
}

}  // namespace penstock::api
