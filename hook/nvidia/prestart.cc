// Reads the environment that the engine wrote; parts of it may come from an image's author.
#include "hook/nvidia/prestart.h"

#include "base/core/printable.h"
#include "hook/container.h"

namespace penstock::hook {
namespace {

constexpr std::string_view kVariable = "NVIDIA_VISIBLE_DEVICES=";
constexpr std::size_t kMaxShown = 80;

std::string Shown(std::string_view value) {
  return "\"" + base::Printable(value.substr(0, kMaxShown)) +
         (value.size() > kMaxShown ? "...\"" : "\"");
}

}  // namespace

base::Status CheckPrestart(std::string_view state) {
  ASSIGN(const auto environment, ReadEnvironment(state));
  std::string_view requested;
  for (const std::string& variable : environment)
    if (variable.starts_with(kVariable))
      requested =
          std::string_view(variable).substr(kVariable.size());  // docker adds its own value last
  if (requested.empty() || requested == "void") return {};
  return Error(
      Code::kFailedPrecondition,
      "this container requests GPUs (--gpus, or NVIDIA_VISIBLE_DEVICES=" + Shown(requested) +
          ") under a runtime that provides none. Start it with --runtime=nvidia (compose: "
          "`runtime: nvidia`) in addition to --gpus, or make that runtime the default: penstock "
          "runtime configure --runtime docker --set-as-default --restart-mode systemd");
}

}  // namespace penstock::hook
