// Fuzzes web configuration files, as written by users and by any program that may write to their
// folder.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/compat/web_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using penstock::api::compat::ParseWebConfig;
  const auto config = ParseWebConfig({reinterpret_cast<const char*>(data), size}, "/etc/web.yaml");
  if (!config.ok()) return config.error().message().empty() ? std::abort(), 0 : 0;
  for (const auto& [name, hash] : config->users)
    if (hash.size() != 60) std::abort();
  for (const auto& [name, value] : config->headers)
    if (value.find_first_of("\r\n") != std::string::npos) std::abort();
  if (config->tls && (config->tls->cert.empty() == config->tls->cert_file.empty())) std::abort();
  return 0;
}
