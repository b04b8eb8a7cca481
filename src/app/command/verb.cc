#include "app/command/verb.h"

#include "base/core/strings.h"

namespace penstock::app::command {

namespace {
constexpr char kJsonPath[] = "jsonpath=TEMPLATE";
}

std::vector<std::string> TableFormats() { return {"table", "json", "yaml", "name", kJsonPath}; }
std::vector<std::string> WideFormats() {
  return {"table", "wide", "json", "yaml", "name", kJsonPath};
}
std::vector<std::string> PlainFormats() { return {"table", "json", "yaml", kJsonPath}; }

std::vector<std::string> NamesOf(const Option& option) { return base::Split(option.names, ','); }

}  // namespace penstock::app::command
