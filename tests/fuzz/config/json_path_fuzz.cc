// Fuzzes the templates of -o jsonpath: a template that is accepted is evaluated, too.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "app/command/output.h"

namespace command = penstock::app::command;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr char kDocument[] =
      R"({"a": [{"b": 1, "c": "x"}, {"b": 2.5, "c": null}, [[], {}]], "d.e": {"f": true}})";
  const std::string_view path{reinterpret_cast<const char*>(data), size};
  const auto valid = command::CheckJsonPath(path);
  const auto text = command::JsonPath(path, kDocument);
  if (path.empty()) return 0;
  if (valid.ok() != text.ok()) std::abort();
  if (!valid.ok() && valid.error().code() != penstock::base::Code::kInvalidArgument) std::abort();
  return 0;
}
