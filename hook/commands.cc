// The table of hooks and their flags.
#include "hook/commands.h"

#include <cstdio>
#include <new>

#include <unistd.h>

#include "hook/arguments.h"
#include "hook/container.h"
#include "hook/hooks.h"
#include "hook/nvidia/prestart.h"
#include "os/core/file.h"

namespace penstock::hook {
namespace {

constexpr std::string_view kStateFlag = "container-spec";

struct Hook {
  std::string_view name;
  std::string_view help;
  std::vector<std::string_view> flags;
  Status (*run)(const os::ConfinedTree& root, const Arguments& arguments, Warnings& warnings);
};

Status RunCudaCompat(const os::ConfinedTree& root, const Arguments& arguments, Warnings& warnings) {
  CudaCompat machine{.driver_version = arguments.Text("host-driver-version"),
                     .cuda_version = arguments.Text("host-cuda-version")};
  if (const std::string folder = arguments.Text("cuda-compat-container-root"); !folder.empty())
    machine.folder = folder;
  return EnableCudaCompat(root, machine, warnings);
}

const std::vector<Hook>& Hooks() {
  static const std::vector<Hook> hooks = {
      {"create-symlinks",
       "create symbolic links: --link TARGET::LINK",
       {"link", kStateFlag},
       [](const os::ConfinedTree& root, const Arguments& arguments, Warnings& warnings) {
         return CreateSymlinks(root, arguments.List("link"), warnings);
       }},
      {"update-ldcache",
       "update the dynamic linker's cache: --folder FOLDER",
       {"folder", "ldconfig-path", kStateFlag},
       [](const os::ConfinedTree& root, const Arguments& arguments, Warnings& warnings) {
         return UpdateLdCache(root, arguments.List("folder"), warnings);
       }},
      {"create-soname-symlinks",
       "create SONAME links for libraries: --folder FOLDER",
       {"folder", "ldconfig-path", kStateFlag},
       [](const os::ConfinedTree& root, const Arguments& arguments, Warnings& warnings) {
         return CreateSonameLinks(root, arguments.List("folder"), warnings);
       }},
      {"enable-cuda-compat",
       "use the image's CUDA compatibility libraries if they are newer than the driver",
       {"host-driver-version", "host-cuda-version", "cuda-compat-container-root", kStateFlag},
       RunCudaCompat},
      {"chmod",
       "set the mode of folders: --mode OCTAL --path PATH",
       {"mode", "path", kStateFlag},
       [](const os::ConfinedTree& root, const Arguments& arguments, Warnings& warnings) {
         return ChangeModes(root, arguments.Text("mode"), arguments.List("path"), warnings);
       }},
      {"disable-device-node-modification",
       "prevent the driver's libraries from creating device files",
       {kStateFlag},
       [](const os::ConfinedTree& root, const Arguments&, Warnings& warnings) {
         return DisableDeviceNodeModification(root, {}, warnings);
       }},
      {"update-application-profile",
       "restrict EGL and Vulkan to the container's GPUs",
       {kStateFlag},
       [](const os::ConfinedTree& root, const Arguments&, Warnings& warnings) {
         return UpdateApplicationProfile(root, warnings);
       }},
  };
  return hooks;
}

void Print(std::string_view level, const std::string& message) {
  std::fprintf(stderr, "penstock-hook: %.*s%s\n", static_cast<int>(level.size()), level.data(),
               message.c_str());
}

Result<std::string> ReadState(const std::string& file) {
  if (file.empty() || file == "-")
    return os::ReadAll(STDIN_FILENO, "the container's state on standard input", kMaxStateBytes);
  return os::ReadFile(file, kMaxStateBytes);
}

Status RunHook(const Hook& hook, const std::vector<std::string>& words, os::UniqueFd started_in,
               Warnings& warnings) {
  ASSIGN(const Arguments arguments, Arguments::Parse(words, hook.flags));
  ASSIGN(const std::string state, ReadState(arguments.Text(kStateFlag)));
  ASSIGN(const os::ConfinedTree root, OpenRoot(state, std::move(started_in)));
  try {
    return hook.run(root, arguments, warnings);
  } catch (const std::bad_alloc&) {  // the container starts without the remaining changes
    warnings.Add(
        "the image's files need more memory than the hook may use; remaining changes are skipped");
    return {};
  }
}

/// The only command of nvidia-container-runtime-hook with an effect.
int Prestart() {
  Status may;
  try {
    const auto state = ReadState("");
    may = state.ok() ? CheckPrestart(*state) : Status(state.error());
  } catch (const std::bad_alloc&) {
    may = base::Error(base::Code::kResourceExhausted,
                      "the container's config.json needs more memory than the hook may use");
  }
  if (may.ok()) return 0;
  Print("", may.error().message());
  return 1;
}

void PrintHelp() {
  std::printf(
      "usage: penstock-hook HOOK [FLAGS], with the state of a container on standard input (OCI "
      "runtime specification)\n\n");
  for (const Hook& hook : Hooks())
    std::printf("  %-34.*s%.*s\n", static_cast<int>(hook.name.size()), hook.name.data(),
                static_cast<int>(hook.help.size()), hook.help.data());
  std::printf(
      "  %-34s%s\n", "prestart",
      "reject a container that requests GPUs (docker's --gpus) if its runtime provides none");
  std::printf(
      "\nAlso callable as nvidia-cdi-hook HOOK, nvidia-ctk hook HOOK and "
      "nvidia-container-runtime-hook prestart.\n");
}

const Hook* FindHook(const std::string& name) {
  for (const Hook& hook : Hooks()) {
    if (hook.name == name) return &hook;
  }
  return nullptr;
}

// A specification that is newer than this program may name hooks that it does not know. Containers
// start without them, as with nvidia-cdi-hook.
int PassOver(const std::optional<std::string>& name) {
  Print("warning: ", name ? "unknown hook \"" + *name + "\"; nothing to do"
                          : "no hook specified; nothing to do");
  return 0;
}

}  // namespace

int RunCall(std::span<const std::string> words, os::UniqueFd started_in) {
  const auto call = ReadCall(words);
  if (!call.ok()) {
    Print("", call.error().message());
    return 1;
  }
  if (call->help) return PrintHelp(), 0;
  if (call->version) return std::printf("penstock-hook " PENSTOCK_VERSION "\n"), 0;
  if (call->hook == "prestart") return Prestart();
  const Hook* hook = call->hook ? FindHook(*call->hook) : nullptr;
  if (hook == nullptr) return PassOver(call->hook);
  Warnings warnings;
  const Status done = RunHook(*hook, call->words, std::move(started_in), warnings);
  for (const std::string& message : warnings.messages())
    Print("warning: ", *call->hook + ": " + message);
  if (done.ok()) return 0;
  Print("", *call->hook + ": " + done.error().message());
  return 1;
}

}  // namespace penstock::hook
