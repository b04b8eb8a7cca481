// Fuzzes a bundle's config.json, with the environment, annotations and mounts that an image's
// author chose.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "hook/runtime/bundle.h"
#include "hook/runtime/nvidia/capabilities.h"
#include "hook/runtime/nvidia/request.h"
#include "hook/runtime/nvidia/requirements.h"

namespace runtime = penstock::hook::runtime;
namespace cdi = penstock::api::cdi;

namespace {

cdi::CdiEdits Given() {
  cdi::CdiEdits edits;
  edits.env = {"NVIDIA_VISIBLE_DEVICES=void"};
  edits.nodes = {{.path = "/dev/nvidia0", .type = "c", .major = 195, .minor = 0}};
  edits.mounts = {{.host_path = "/h/libcuda.so.550.54.15",
                   .container_path = "/usr/lib/libcuda.so.550.54.15",
                   .options = {"rbind"}}};
  edits.hooks = {{.name = "createContainer", .path = "/h/penstock-hook"}};
  edits.additional_gids = {44};
  return edits;
}

void CheckNames(const std::vector<std::string>& names) {
  if (names.size() > runtime::kMaxNames) std::abort();
  // A name has only the slash of its kind, so that it cannot be a path to another place.
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
  const runtime::RuntimeFacts facts = bundle->facts();
  const runtime::Config config;
  const auto request = runtime::ReadRequest(facts, config);
  if (request.ok()) {
    CheckNames(request->devices);
    CheckNames(request->optional_devices);
  }
  cdi::CdiEdits edits = Given();
  if (const auto capabilities = runtime::ReadCapabilities(facts, config, false); capabilities.ok())
    runtime::Restrict(edits, *capabilities);
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
