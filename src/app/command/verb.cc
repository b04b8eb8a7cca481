#include "app/command/verb.h"

#include "base/core/strings.h"

namespace penstock::app::command {

namespace {
constexpr char kJsonPath[] = "jsonpath=TEMPLATE";
}

Option Flag(std::string names, bool* target, std::string help) {
  return {.names = std::move(names), .target = target, .help = std::move(help)};
}
Option Value(std::string names, OptionTarget target, std::string value, std::string help) {
  return {.names = std::move(names),
          .target = std::move(target),
          .value = std::move(value),
          .help = std::move(help)};
}
Option Argument(std::string name, OptionTarget target, std::string help) {
  return {.names = std::move(name), .target = std::move(target), .help = std::move(help)};
}

Option Option::OneOf(std::vector<std::string> values) && {
  choices = std::move(values);
  return std::move(*this);
}
Option Option::InAnyCase() && {
  any_case = true;
  return std::move(*this);
}
Option Option::Checked(std::function<std::string(const std::string&)> function) && {
  check = std::move(function);
  return std::move(*this);
}
Option Option::Separated() && {
  separated = true;
  return std::move(*this);
}
Option Option::Required() && {
  required = true;
  return std::move(*this);
}
Option Option::Hidden() && {
  hidden = true;
  return std::move(*this);
}
Option Option::ValueOptional(bool optional) && {
  value_optional = optional;
  return std::move(*this);
}
Option Option::Given(bool* becomes) && {
  given = becomes;
  return std::move(*this);
}
Option Option::Excludes(std::vector<std::string> others) && {
  excludes = std::move(others);
  return std::move(*this);
}
Option Option::Needs(std::vector<std::string> others) && {
  needs = std::move(others);
  return std::move(*this);
}
Option Option::Environment(std::string variable) && {
  environment = std::move(variable);
  return std::move(*this);
}
Option Option::Group(std::string heading) && {
  group = std::move(heading);
  return std::move(*this);
}

std::vector<std::string> TableFormats() { return {"table", "json", "yaml", "name", kJsonPath}; }
std::vector<std::string> WideFormats() {
  return {"table", "wide", "json", "yaml", "name", kJsonPath};
}
std::vector<std::string> PlainFormats() { return {"table", "json", "yaml", kJsonPath}; }

std::vector<std::string> NamesOf(const Option& option) { return base::Split(option.names, ','); }

}  // namespace penstock::app::command
