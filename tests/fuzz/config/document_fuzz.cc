// Fuzzes the strict parser of YAML and JSON: configuration, and responses of other programs.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/core/document.h"
#include "base/yaml.h"

namespace {

using penstock::base::Code;
using penstock::base::Result;
using penstock::base::Value;

// Every value has a position, and no map has a duplicate key.
void Check(const Value& value, int depth) {
  if (depth > 33 || value.mark.line < 0 || value.mark.column < 0) std::abort();
  if (value.list) {
    for (const Value& item : *value.list) Check(item, depth + 1);
  }
  if (!value.map) return;
  for (const auto& entry : *value.map) {
    if (value.Find(entry.key) != &entry.value) std::abort();
    Check(entry.value, depth + 1);
  }
}

void Check(const Result<Value>& parsed) {
  if (parsed.ok()) {
    Check(*parsed, 0);
  } else if (parsed.error().code() != Code::kInvalidArgument ||
             parsed.error().message().rfind("fuzz", 0) != 0) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const penstock::base::ParseLimits limits{.bytes = 32u << 10, .depth = 32};
  Check(penstock::base::ParseYaml(text, "fuzz", limits));
  Check(penstock::base::ParseJson(text, "fuzz", limits));
  return 0;
}
