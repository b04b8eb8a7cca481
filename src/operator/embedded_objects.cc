#include <algorithm>
#include <set>

#include "base/core/json_text.h"
#include "base/yaml.h"
#include "operator/embedded_files.h"
#include "operator/json_values.h"

namespace penstock::cluster {
namespace {

/// The documents of a file of several.
std::vector<std::string_view> Documents(std::string_view text) {
  constexpr std::string_view kBetween = "\n---\n";
  std::vector<std::string_view> documents;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(kBetween, begin), text.size());
    documents.push_back(text.substr(begin, end - begin));
    begin = end + kBetween.size();
  }
  return documents;
}

/// Whether it has "kind: KIND" as a line of its own, before it is read as a whole.
bool IsOfKind(std::string_view document, std::string_view kind) {
  const std::string line = "\nkind: " + std::string(kind) + "\n";
  return document.find(line) != std::string_view::npos;
}

}  // namespace

base::Result<std::vector<Json>> EmbeddedObjects(std::string_view kind) {
  std::vector<Json> objects;
  std::set<std::string> names;
  for (const EmbeddedFile& file : EmbeddedFiles())
    for (const std::string_view document : Documents(file.content)) {
      if (!IsOfKind(document, kind)) continue;
      const auto value = base::ParseYaml(document, file.name);
      if (!value.ok()) return base::Error(base::Code::kInternal, value.error().message());
      Json object = base::JsonOf<Json>(*value);
      if (names.insert(TextAt(object, "/metadata/name")).second)
        objects.push_back(std::move(object));
    }
  return objects;
}

}  // namespace penstock::cluster
