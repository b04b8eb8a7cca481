// Fuzzes Penstock objects, as written by administrators.
#include <cstdint>
#include <string>

#include "../oracle.h"
#include "api/cluster/penstock.h"
#include "backend/config_terms.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using penstock::fuzz::Require;
  const auto spec = penstock::api::ParsePenstock(penstock::fuzz::Text(data, size), "fuzz",
                                                 penstock::backend::ConfigTerms());
  if (!spec.ok()) {
    Require(spec.error().code() == penstock::base::Code::kInvalidArgument);
    Require(spec.error().message().starts_with("fuzz"));
    return 0;
  }
  const std::string text = ToJson(*spec);
  const auto again = penstock::api::ParsePenstock(
      R"({"apiVersion":"penstock.io/v1alpha1","kind":"Penstock","spec":)" + text + "}", "again",
      penstock::backend::ConfigTerms());
  Require(again.ok() && ToJson(*again) == text);
  return 0;
}
