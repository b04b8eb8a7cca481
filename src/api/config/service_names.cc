#include "api/config/service_names.h"

#include <algorithm>

#include "base/core/printable.h"
#include "base/core/strings.h"

namespace penstock::api {
namespace {

constexpr std::string_view kSuffix = ".service";
constexpr std::size_t kLongestUnit = 255;  // UNIT_NAME_MAX of systemd, without its NUL

bool IsOfUnitName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view(":-_.\\").find(c) != std::string_view::npos;
}

}  // namespace

std::string WhyNoService(std::string_view name) {
  if (!name.ends_with(kSuffix) || name.size() == kSuffix.size())
    return "is not the name of a service: names end with .service";
  if (name.size() > kLongestUnit)
    return "is longer than systemd's names of units, " + std::to_string(kLongestUnit) + " bytes";
  if (name.front() == '-' || name.front() == '.' || !std::ranges::all_of(name, IsOfUnitName))
    return "is not the name of a service: names have letters, digits and \":-_.\\\", and begin "
           "with none of \"-.\"";
  return "";
}

std::vector<std::string> ReadServiceNames(const base::Value& list, const std::string& where,
                                          std::string_view suffix, const ReportService& report) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < list.list->size(); ++i) {
    const base::Value& one = (*list.list)[i];
    const std::string place = base::Item(where, i);
    if (one.kind != base::Value::Kind::kString) {
      report(one.mark, place + ": is " + std::string(base::Describe(one.kind)) +
                           " where the name of a service is expected");
      continue;
    }
    std::string name = one.text;
    if (!name.ends_with(suffix)) name += suffix;
    if (const std::string why = WhyNoService(name); !why.empty()) {
      report(one.mark,
             place + ": \"" + base::Printable(one.text.substr(0, kLongestUnit)) + "\" " + why);
    } else if (std::ranges::find(names, name) != names.end()) {
      continue;
    } else if (names.size() == kMostServices) {
      report(one.mark, place + ": is one too many; at most " + std::to_string(kMostServices) +
                           " services can be listed");
      break;
    } else {
      names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace penstock::api
