// Fuzzes the state that a low-level runtime passes to a hook on standard input, and the config.json
// of the bundle that it names. The input is the state, a NUL, and the file; "BUNDLE" in the state
// stands for the file's folder.
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "../oracle.h"
#include "hook/container.h"
#include "os/core/file.h"
#include "os/core/testing/temporary_folder.h"

namespace {

using namespace penstock;
using fuzz::Require;
using nlohmann::json;

std::string StringAt(const json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found == object.end() || !found->is_string() ? "" : found->get<std::string>();
}

/// The root, read from the same texts by another implementation.
std::string ExpectedRoot(const std::string& state, const std::string& config,
                         const std::string& folder) {
  const json map = json::parse(state, nullptr, false);
  if (const std::string root = StringAt(map, "root"); !root.empty()) return root;
  const std::string bundle = StringAt(map, "bundle");
  Require(bundle.find(folder) == 0);  // no other folder has a config.json
  const json document = json::parse(config, nullptr, false);
  Require(document.is_object());
  const auto root = document.find("root");
  const std::string path = root == document.end() ? "" : StringAt(*root, "path");
  Require(!path.empty());
  return path.front() == '/' ? path : bundle + "/" + path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const os::TemporaryFolder folder;
  const auto parts = fuzz::Parts(data, size, 2);
  std::string state = parts[0];
  constexpr std::string_view kBundle = "BUNDLE";
  for (auto at = state.find(kBundle); at != std::string::npos;
       at = state.find(kBundle, at + folder.path().size()))
    state.replace(at, kBundle.size(), folder.path());
  folder.Write("config.json", parts[1]);

  const auto root = hook::FindRoot(state);
  if (root.ok()) {
    Require(*root == ExpectedRoot(state, parts[1], folder.path()));
    return 0;
  }
  const std::string& message = root.error().message();
  Require(message.find("container") != std::string::npos ||
          message.find("config.json") != std::string::npos);
  return 0;
}
