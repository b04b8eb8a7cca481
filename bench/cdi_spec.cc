// Measures building the CDI specification of a machine with eight GPUs, from the files to the text:
// what an agent does when a driver's files change.
#include <cstdlib>
#include <filesystem>
#include <string>

#include "backend/nvidia/dialect/dialect.h"
#include "bench/calls.h"
#include "node/cdi/generate.h"
#include "tests/support/driver_root.h"

namespace {

using namespace penstock;
using support::DriverRoot;

/// A folder below /tmp, in memory or on disk; removed with the object.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / "penstock-bench-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Installs the whole driver with its 32-bit libraries, among a machine's other libraries and other
/// entries of its ld.so.cache.
void Fill(const DriverRoot& machine) {
  const std::string folder = "/usr/lib/x86_64-linux-gnu";
  machine.AddLibraries(folder);
  machine.AddLibraries("/usr/lib/i386-linux-gnu", false);
  machine.AddPrograms("/usr/bin");
  machine.AddConfiguration("/usr/share", "/etc/vulkan", "/etc/OpenCL");
  machine.AddFirmware();
  machine.AddControlDevices();
  std::map<std::string, std::string> cache;
  for (const auto& library : support::DriverLibraries())
    if (!library.soname.empty()) cache[library.soname] = folder + "/" + library.soname;
  for (int i = 0; i < 1500; ++i) {
    const std::string name = "libother" + std::to_string(i) + ".so.1";
    machine.Write(folder + "/" + name);
    cache[name] = folder + "/" + name;
  }
  machine.AddCache(cache);
}

void CdiSpecification(benchmark::State& state) {
  const Folder folder;
  const DriverRoot machine(folder.path() + "/machine");
  Fill(machine);
  std::vector<device::Facts> gpus;
  for (int i = 0; i < 8; ++i) gpus.push_back(support::AddGpu(machine, i));
  const device::Driver driver{
      .vendor = "nvidia", .version = support::kDriverVersion, .runtime_version = "12.9"};
  node::cdi::Input input{&backend::nvidia::TheDialect(), &driver, {}};
  for (const device::Facts& gpu : gpus) input.devices.push_back(&gpu);
  const node::cdi::Places places{
      .driver_root = machine.path(), .dev_root = machine.path(), .sysfs_root = machine / "/sys"};
  bench::Calls calls(state);
  std::size_t mounts = 0;
  for (auto _ : state)
    calls.Time([&] {
      const auto generated = node::cdi::Generate(input, places, {});
      if (!generated.ok()) return state.SkipWithError(generated.error().message().c_str());
      benchmark::DoNotOptimize(api::cdi::ToJson(generated->spec));
      mounts =
          generated->spec.edits.mounts.size() + generated->narrow->devices[0].edits.mounts.size();
    });
  state.SetLabel("8 GPUs, " + std::to_string(mounts) + " files");
}
BENCHMARK(CdiSpecification);

}  // namespace
