// penstock-runtime: an OCI runtime that gives containers the devices they request, then executes
// the low-level runtime in its place. It forks nothing and leaves no process behind. For all
// commands but create and run it only finds that runtime.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "hook/runtime/arguments.h"
#include "hook/runtime/create.h"
#include "hook/runtime/low_level.h"
#include "hook/runtime/nvidia/config.h"
#include "hook/runtime/run_log.h"
#include "os/core/file.h"

namespace {

using namespace penstock::hook::runtime;  // NOLINT: this is its program
using penstock::base::Code;
using penstock::base::Error;
using penstock::base::Result;

/// The text of config.toml; empty if there is no file.
Result<std::string> ReadConfigText(const std::string& path) {
  auto text = penstock::os::ReadFile(path);
  if (!text.ok() && text.error().code() == Code::kNotFound) return std::string();
  return text;
}

Result<Config> LoadConfig(const std::string& path, std::string_view program, RunLog& log) {
  ASSIGN(const std::string text, ReadConfigText(path));
  ASSIGN(Config config, ParseConfig(text, path));
  // The program names of NVIDIA's runtimes select a mode.
  if (program.ends_with("nvidia-container-runtime.cdi")) config.mode = "cdi";
  if (program.ends_with("nvidia-container-runtime.legacy")) config.mode = "legacy";
  log.Configure(config);
  for (const std::string& warning : config.warnings) log.Write(RuntimeLogLevel::kWarn, warning);
  for (const std::string& key : config.no_effect)
    log.Write(RuntimeLogLevel::kDebug, path + ": " + key + " has no effect in this program");
  if (config.mode != "auto" && config.mode != "cdi")
    log.Write(RuntimeLogLevel::kDebug,
              "mode \"" + config.mode +
                  "\": devices are taken from CDI specifications, as in every mode");
  return config;
}

Result<std::string> FindRuntime(const std::vector<std::string>& candidates) {
  const char* path = std::getenv("PATH");
  return FindLowLevelRuntime(candidates, path != nullptr ? path : "", "/proc/self/exe");
}

/// All work before the low-level runtime takes over; returns that runtime's path.
Result<std::string> Prepare(const RuntimeCall& call, std::string_view program, RunLog& log) {
  const std::string file = FindConfig();
  if (!call.Creates()) return FindRuntime(ParseRuntimes(ReadConfigText(file).value_or("")));
  ASSIGN(const Config config, LoadConfig(file, program, log));
  ASSIGN(std::string runtime, FindRuntime(config.runtimes));
  TRY(PrepareBundle(call.bundle, config, log));
  return runtime;
}

int Fail(const Error& error, RunLog& log) {
  constexpr std::size_t kMax = 4096;
  std::string text = error.message();
  if (text.size() > kMax) text = text.substr(0, kMax) + "...";
  log.Write(RuntimeLogLevel::kError, text);
  std::fprintf(stderr, "penstock-runtime: %s\n", text.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv, argv + argc);
  const std::string_view program = words.empty() ? std::string_view() : words.front();
  const RuntimeCall call = ReadArguments(std::span(words).subspan(words.empty() ? 0 : 1));
  if (call.version) {
    std::printf("penstock-runtime version %s\n", PENSTOCK_VERSION);
    std::fflush(stdout);
  }
  RunLog log(call.log);
  auto runtime = Prepare(call, program, log);
  if (!runtime.ok()) return Fail(runtime.error(), log);
  std::vector<char*> arguments = {runtime->data()};
  for (int i = 1; i < argc; ++i) arguments.push_back(argv[i]);
  arguments.push_back(nullptr);
  ::execv(runtime->c_str(), arguments.data());
  return Fail(penstock::base::ErrnoError(errno, "execute " + *runtime), log);
}
