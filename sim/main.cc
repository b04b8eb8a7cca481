// penstock-sim: reads the flags and calls the verb. What a verb does is in cli_*.cc.
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include <CLI/CLI.hpp>

#include "sim/cli.h"

namespace {

namespace cli = penstock::sim::cli;

constexpr const char* kFooter = R"(Examples:
  penstock-sim list
  penstock-sim start dgx-a100 --root /tmp/dgx
  LD_LIBRARY_PATH=/tmp/dgx/usr/lib/x86_64-linux-gnu /tmp/dgx/usr/bin/nvidia-smi -L
  penstock-sim set --root /tmp/dgx 3 utilisation=80 process=4711:10240:train.py
  penstock-sim fault --root /tmp/dgx 3 xid 79
  penstock-sim heal --root /tmp/dgx 3
  penstock-sim stop --root /tmp/dgx

Exit status: 0 done, 1 failed, 2 wrong usage.)";

constexpr const char* kSetHelp = R"(Settings:
  utilisation=PERCENT     use; power, clocks and link follow
  memory-used=MiB         allocated besides the processes (or 10Gi)
  temperature=CELSIUS  power=WATTS  persistence=0|1  mig=enabled|disabled
  process=PID:MiB[:NAME[:C|G|M]]   one more process (or a new size of one)
  no-processes
  uuid=GPU-…  serial=TEXT          another board sits there: between fault remove and heal

Example: penstock-sim set --root /tmp/dgx 0 utilisation=95 process=1234:30000:python)";

constexpr const char* kFaultHelp = R"(Kinds, for a GPU (number, UUID or PCI address) or all:
  xid N [--text T]        kernel log line and NVML event as this driver gives them, with what follows from it
                          (79: the GPU is lost); --alone leaves out what follows
  ecc [--count N] [--corrected]    counters and the ECC event
  remap-pending           a row waits for a reset (XID 63)
  remap-failure           no spare row (XID 64)
  lost [--where handle|getter|both]
  remove                  unplugged: gone from NVML, /sys and /dev
  recovery-action NAME    none, gpu-reset, node-reboot, drain-p2p, drain-and-reset, …
  hang [CALL|all] [MS|forever]     until healed; CALL with or without its _vN
  error CALL|all CODE [--count N]  CODE is nvmlReturn_t's number
For the driver:
  driver unload
  driver mismatch [VERSION]        another library beside the loaded module
For MPS, until heal mps:
  mps hang                         the control daemons answer nothing
  mps exit                         a control daemon that is started ends at once
  mps nonsense                     they answer what cannot be read
  mps die                          they are killed, once; their servers live on

Examples:
  penstock-sim fault --root /tmp/dgx 2 xid 48
  penstock-sim fault --root /tmp/dgx 5 hang nvmlDeviceGetMemoryInfo forever
  penstock-sim fault --root /tmp/dgx all error nvmlDeviceGetPowerUsage 999 --count 3
  penstock-sim fault --root /tmp/dgx driver unload
  penstock-sim fault --root /tmp/dgx mps hang)";

std::string DefaultRoot() {
  const char* root = std::getenv("PENSTOCK_SIM_ROOT");
  return root && root[0] ? root : "/run/penstock/sim";
}

class Options {
 public:
  explicit Options(CLI::App& app) : app_(app) {
    app_.footer(kFooter);
    app_.set_version_flag("--version", std::string("penstock-sim ") + PENSTOCK_VERSION);
    app_.require_subcommand(1);
    app_.add_option("--root", root_, "folder of the machine's files ($PENSTOCK_SIM_ROOT)")->capture_default_str();
    app_.fallthrough();
    AddQueries();
    AddLife();
    AddChanges();
  }

  int Run() {
    for (CLI::App* verb : app_.get_subcommands()) {
      std::error_code error;
      const std::string root = std::filesystem::absolute(root_, error).lexically_normal().string();
      start_.root = set_.root = fault_.root = heal_.root = root;
      const cli::Output output = output_ == "json" ? cli::Output::kJson : output_ == "yaml" ? cli::Output::kYaml : cli::Output::kTable;
      const std::string name = verb->get_name();
      if (name == "list") return cli::List(output);
      if (name == "describe") return cli::Describe(machine_, output);
      if (name == "start") return cli::Start(start_);
      if (name == "stop") return cli::Stop(root);
      if (name == "status") return cli::ShowStatus(root, output);
      if (name == "set") return cli::Set(set_);
      if (name == "fault") return cli::Fault(fault_);
      if (name == "heal") return cli::Heal(heal_);
    }
    return cli::kUsage;
  }

 private:
  void AddOutput(CLI::App* verb, std::vector<std::string> forms) {
    verb->add_option("-o,--output", output_, "form of the output")->check(CLI::IsMember(std::move(forms)));
  }

  void AddQueries() {
    AddOutput(app_.add_subcommand("list", "the machines there are"), {"table", "json"});
    CLI::App* describe = app_.add_subcommand("describe", "what a machine is made of");
    describe->add_option("machine", machine_, "name, or path of a machine file")->required();
    AddOutput(describe, {"table", "json", "yaml"});
    AddOutput(app_.add_subcommand("status", "the machine under --root, and its faults"), {"table", "json"});
  }

  void AddLife() {
    CLI::App* start = app_.add_subcommand("start", "build a machine's files under --root; no process stays");
    start->add_option("machine", start_.machine, "name, or path of a machine file")->required();
    start->add_option("--driver", start_.driver, "driver version instead of the machine's own, e.g. 470.82.01");
    start->add_flag("--no-driver", start_.no_driver, "GPUs without a driver; heal driver installs one");
    start->add_flag("--replace", start_.replace, "stop a machine that is there first");
    start->add_option("--seed", start_.seed, "tells two machines of one file apart: other UUIDs and serial numbers");
    app_.add_subcommand("stop", "remove the machine's files");
  }

  void AddChanges() {
    CLI::App* set = app_.add_subcommand("set", "what a GPU is doing");
    set->footer(kSetHelp);
    set->add_option("gpu", set_.target, "number, UUID, PCI address, or all")->required();
    set->add_option("settings", set_.settings, "key=value …")->required();

    CLI::App* fault = app_.add_subcommand("fault", "break something");
    fault->footer(kFaultHelp);
    fault->add_option("target", fault_.target, "number, UUID, PCI address, all, driver, or mps")->required();
    fault->add_option("kind", fault_.words, "the fault and its arguments")->required();
    fault->add_option("--text", fault_.text, "message of an XID");
    fault->add_option("--count", fault_.count, "errors to count, or calls to strike");
    fault->add_option("--where", fault_.where, "where a lost GPU shows")
        ->check(CLI::IsMember({"handle", "getter", "both"}))
        ->capture_default_str();
    fault->add_flag("--corrected", fault_.corrected, "ECC errors that were corrected");
    fault->add_flag("--no-log", fault_.no_log, "an XID that misses the kernel log");
    fault->add_flag("--no-event", fault_.no_event, "an XID whose NVML event is lost");
    fault->add_flag("--alone", fault_.alone, "an XID without what follows from it");

    CLI::App* heal = app_.add_subcommand("heal", "undo faults, plug in what was removed, load the driver");
    heal->add_option("target", heal_.target, "number, UUID, PCI address, all, driver, or mps")->required();
    heal->add_option("--driver", heal_.driver, "the driver version to load (with target driver or all)");
  }

  CLI::App& app_;
  std::string root_ = DefaultRoot(), output_ = "table", machine_;
  cli::StartOptions start_;
  cli::SetOptions set_;
  cli::FaultOptions fault_;
  cli::HealOptions heal_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Simulated accelerator machines: files, driver library and faults.", "penstock-sim"};
  Options options(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) { return app.exit(error) == 0 ? cli::kOk : cli::kUsage; }
  return options.Run();
}
