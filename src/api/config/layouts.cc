#include "api/config/layouts.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "api/config/layout_fields.h"
#include "base/core/fields.h"
#include "base/core/json_text.h"

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

std::string EncodeLayout(const Layout& layout) {
  return base::JsonText(base::ToJsonObject<nlohmann::json>(layout));
}

base::Result<Layout> DecodeLayout(std::string_view text, std::string_view name) {
  Layout layout;
  const base::Status read = base::ReadFields(
      text, name, {}, [&](base::StructReader& reader) { VisitFields(reader, layout); });
  if (!read.ok()) return base::Error(base::Code::kInvalidArgument, read.error().message());
  return layout;
}

}  // namespace penstock::api
