// A bundle's config.json, with whatever an image's author wrote into its environment, annotations and mounts.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "hook/runtime/bundle.h"
#include "hook/runtime/capabilities.h"
#include "hook/runtime/request.h"
#include "hook/runtime/requirements.h"

namespace runtime = penstock::hook::runtime;
namespace cdi = penstock::api::cdi;

namespace {

cdi::Edits Given() {
  cdi::Edits edits;
  edits.env = {"NVIDIA_VISIBLE_DEVICES=void"};
  edits.nodes = {{.path = "/dev/nvidia0", .type = "c", .major = 195, .minor = 0}};
  edits.mounts = {{.host_path = "/h/libcuda.so.550.54.15", .container_path = "/usr/lib/libcuda.so.550.54.15", .options = {"rbind"}}};
  edits.hooks = {{.name = "createContainer", .path = "/h/penstock-hook"}};
  edits.additional_gids = {44};
  return edits;
}

void CheckNames(const std::vector<std::string>& names) {
  if (names.size() > runtime::kMostNames) std::abort();
  // One slash, the kind's own: no name leads anywhere, whatever becomes of it.
  for (const std::string& name : names)
    if (!cdi::ParseName(name) || name.find('/') != name.rfind('/')) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto bundle = runtime::Bundle::Parse({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!bundle.ok()) {
    if (bundle.error().message().rfind("fuzz", 0) != 0) std::abort();
    return 0;
  }
  const runtime::Facts facts = bundle->facts();
  const runtime::Config config;
  const auto request = runtime::ReadRequest(facts, config);
  if (request.ok()) {
    CheckNames(request->devices);
    CheckNames(request->wishes);
  }
  cdi::Edits edits = Given();
  if (const auto capabilities = runtime::ReadCapabilities(facts, config, false); capabilities.ok()) runtime::Restrict(edits, *capabilities);
  (void)runtime::CheckRequirements(facts, config, {"550.54.15", "12.4"}).ok();
  bundle->RemoveStaleHooks();
  bundle->Apply(edits);
  const std::string once = bundle->ToText();
  auto again = runtime::Bundle::Parse(once, "fuzz");
  if (!again.ok()) std::abort();
  again->Apply(edits);
  if (again->ToText() != once) std::abort();
  return 0;
}
