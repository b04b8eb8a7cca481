// Fuzzes CDI specifications of other programs, in JSON or YAML: a specification is rejected with a
// position, or has the same meaning after it is written again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "api/cdi/registry.h"
#include "api/cdi/spec.h"
#include "api/cdi/transform.h"

namespace cdi = penstock::api::cdi;

namespace {

void MustBe(bool condition) {
  if (!condition) std::abort();
}

void CheckRead(const cdi::Spec& spec, std::string_view text) {
  MustBe(cdi::Check(spec).ok());
  for (const std::string& written : {cdi::ToJson(spec), cdi::ToYaml(spec)}) {
    const auto again = cdi::Parse(written, "fuzz");
    MustBe(again.ok() && *again == spec);
  }
  for (const auto relative : {cdi::Relative::kHost, cdi::Relative::kContainer})
    MustBe(cdi::Check(cdi::TransformRoot(spec, "/", "/root", relative)).ok());

  const cdi::Registry registry({{"fuzz", 0, std::string(text)}});
  MustBe(registry.problems().empty() && registry.devices().size() == spec.devices.size());
  std::vector<std::string> names;
  for (const auto& device : registry.devices()) {
    MustBe(cdi::ParseName(device.name).has_value());
    names.push_back(device.name);
  }
  MustBe(registry.Inject(names).ok());
  MustBe(
      cdi::Registry({{"a", 0, std::string(text)}, {"b", 0, std::string(text)}}).devices().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto spec = cdi::Parse(text, "fuzz");
  if (spec.ok()) {
    CheckRead(*spec, text);
  } else {
    MustBe(spec.error().code() == penstock::base::Code::kInvalidArgument &&
           spec.error().message().starts_with("fuzz"));
    MustBe(cdi::Registry({{"fuzz", 0, std::string(text)}}).problems().size() == 1);
  }
  (void)cdi::ParseName(text);
  return 0;
}
