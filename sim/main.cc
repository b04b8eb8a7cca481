// penstock-sim: reads the flags and calls the verb. The verbs are in cli_*.cc.
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

constexpr const char* kSetHelp = R"(Settings, applied in the given order:
  utilisation=PERCENT     utilization; power, clocks, link, traffic and GPM values follow
  memory-utilisation=  encoder=  decoder=  jpeg=  ofa=PERCENT
  memory-used=MiB         memory in use beyond the processes' (or 10Gi);  bar1-used=MiB
  temperature=CELSIUS  memory-temperature=CELSIUS  fan=PERCENT
  power=WATTS  power-limit=WATTS  sm-clock=  memory-clock=  video-clock=MHZ  pstate=N
  clock-events=none|idle,clocks-setting,power-cap,hw-slowdown,sync-boost,sw-thermal,hw-thermal,power-brake,display-clocks
                          while one is active, the time under its limit grows
  pcie-generation=N  pcie-width=N  persistence=0|1  mig=enabled|disabled  fabric=UUID.CLIQUE|alone
  fabric-state=0..3  fabric-status=CODE  fabric-health=MASK  fabric-summary=0..3     NVML's numbers
  licensed=0|1            of a vGPU
Processes:
  process=PID:MiB[:NAME[:C|G|M][:SM[/MEMORY[/ENCODER[/DECODER]]]][:giN/ciN]]
                          adds a process (or changes its size or utilization); the percentages of all processes add up
                          to the GPU's utilization; processes without one share the rest of utilisation=; giN/ciN is
                          the MIG device on which it runs (create one with nvidia-smi mig)
  end-process=PID  no-processes
Rates per second (bytes, or 10Gi), and counter values:
  pcie-tx=  pcie-rx=  nvlink-tx=  nvlink-rx=RATE      of all links, divided equally among the active ones
  pcie-tx-bytes=  pcie-rx-bytes=  nvlink-tx-bytes=  nvlink-rx-bytes=COUNT
  energy=MILLIJOULES      increases with power
  limited-by-power=  -heat  -sync-boost  -board  -low-use  -reliability  -sw-heat  -hw-heat  -power-brake=NANOSECONDS
  nvlink-replay=LINK:COUNT  nvlink-recovery=  nvlink-crc-flit=  nvlink-crc-data=
  pcie-errors=KIND:COUNT  (correctable, bad-tlp, … as NVML's fields 169 and 173 to 183)
  pcie-replays=N  remapped-correctable=N  remapped-uncorrectable=N  retired-single=N  retired-double=N
  counters=0              resets all counters, as a GPU reset does
GPM (Hopper and newer), percent with decimals:
  gpm-graphics=  -sm  -occupancy  -integer  -tensor  -dfma  -hmma  -dmma  -imma  -dram  -fp64  -fp32  -fp16
Replaces the board, between fault remove and heal:
  uuid=GPU-…  serial=TEXT

Examples:
  penstock-sim set --root /tmp/dgx 0 utilisation=95 process=1234:30000:python
  penstock-sim set --root /tmp/dgx 0 process=1234:30000:python:60/30 process=1235:10000:python:20 nvlink-tx=25Gi gpm-tensor=37.5)";

constexpr const char* kFaultHelp = R"(Faults of a GPU (number, UUID or PCI address) or of all:
  xid N [--text T]        kernel log line and NVML event as this driver reports them, with their consequences
                          (79: the GPU is lost); --alone omits the consequences; --instance 3 or 3/0:
                          of this MIG instance
  ecc [--count N] [--corrected]    counters and the ECC event
  remap-pending           a row remapping is pending until a reset (XID 63)
  remap-failure           no spare row left (XID 64)
  lost [--where handle|getter|both]
  remove                  unplugged: removed from NVML, /sys and /dev
  recovery-action NAME    none, gpu-reset, node-reboot, drain-p2p, drain-and-reset, …
  hang [CALL|all] [MS|forever]     until healed; CALL with or without its _vN
  error CALL|all CODE [--count N]  CODE is nvmlReturn_t's number
  field ID [value=N] [status=CODE] [type=double|uint|ulong|ulonglong|longlong|int] [--count N]
                          what nvmlDeviceGetFieldValues returns instead; N is the number that the 8 bytes represent
  nonsense READING=N …    implausible values, returned with success: temperature, memory-temperature, power (mW),
                          utilisation, memory-utilisation, memory-used (bytes), sm-clock, memory-clock, fan, encoder,
                          decoder, process-utilisation, process-memory (bytes), gpm (every percentage)
  junk-samples            process utilization of 100 processes, most of which do not exist
Faults of the driver:
  driver unload
  driver uninstall                 unloaded, and its files are removed
  driver mismatch [VERSION]        library version differs from the loaded module
Faults of MPS, until heal mps:
  mps hang                         the control daemons do not answer
  mps exit                         a control daemon exits as soon as it is started
  mps nonsense                     the control daemons send unreadable answers
  mps die                          the control daemons are killed once; their servers keep running

Examples:
  penstock-sim fault --root /tmp/dgx 2 xid 48
  penstock-sim fault --root /tmp/dgx 5 hang nvmlDeviceGetMemoryInfo forever
  penstock-sim fault --root /tmp/dgx all error nvmlDeviceGetPowerUsage 999 --count 3
  penstock-sim fault --root /tmp/dgx 0 field 186 value=4294967295
  penstock-sim fault --root /tmp/dgx 0 nonsense temperature=255 memory-used=99999999999999
  penstock-sim fault --root /tmp/dgx driver unload
  penstock-sim fault --root /tmp/dgx mps hang)";

constexpr const char* kClockHelp =
    R"(The clock that advances counters and timestamps samples. Faults and events do not use it.
  stop                    stops the clock: two readings of a counter are equal
  advance DURATION        advances it (500ms, 10s, 1h), whether stopped or running
  run                     continues from where it stopped

Example: exactly 3000 J at 300 W, however long the test takes
  penstock-sim set --root /tmp/dgx 0 power=300
  penstock-sim clock --root /tmp/dgx stop
  penstock-sim clock --root /tmp/dgx advance 10s)";

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
    app_.add_option("--root", root_, "folder of the machine's files ($PENSTOCK_SIM_ROOT)")
        ->capture_default_str();
    app_.fallthrough();
    AddQueries();
    AddLife();
    AddChanges();
  }

  int Run() {
    for (CLI::App* verb : app_.get_subcommands()) {
      std::error_code error;
      const std::string root = std::filesystem::absolute(root_, error).lexically_normal().string();
      start_.root = set_.root = fault_.root = heal_.root = clock_.root = root;
      const cli::Output output = output_ == "json"   ? cli::Output::kJson
                                 : output_ == "yaml" ? cli::Output::kYaml
                                                     : cli::Output::kTable;
      const std::string name = verb->get_name();
      if (name == "list") return cli::List(output);
      if (name == "describe") return cli::Describe(machine_, output);
      if (name == "start") return cli::Start(start_);
      if (name == "stop") return cli::Stop(root);
      if (name == "status") return cli::ShowStatus(root, output);
      if (name == "set") return cli::Set(set_);
      if (name == "fault") return cli::Fault(fault_);
      if (name == "heal") return cli::Heal(heal_);
      if (name == "clock") return cli::Clock(clock_);
    }
    return cli::kUsage;
  }

 private:
  void AddOutput(CLI::App* verb, std::vector<std::string> forms) {
    verb->add_option("-o,--output", output_, "output format")
        ->check(CLI::IsMember(std::move(forms)));
  }

  void AddQueries() {
    AddOutput(app_.add_subcommand("list", "list the available machines"), {"table", "json"});
    CLI::App* describe = app_.add_subcommand("describe", "show the description of a machine");
    describe->add_option("machine", machine_, "name, or path of a machine file")->required();
    AddOutput(describe, {"table", "json", "yaml"});
    AddOutput(app_.add_subcommand("status", "show the machine under --root, and its faults"),
              {"table", "json"});
  }

  void AddLife() {
    CLI::App* start = app_.add_subcommand(
        "start", "build a machine's files under --root; no process keeps running");
    start->add_option("machine", start_.machine, "name, or path of a machine file")->required();
    start->add_option("--driver", start_.driver,
                      "driver version instead of the machine's own, e.g. 470.82.01");
    start->add_flag("--no-driver", start_.no_driver,
                    "GPUs without a driver; 'heal driver' installs one");
    start->add_flag("--replace", start_.replace, "stop an existing machine first");
    start->add_option("--seed", start_.seed,
                      "seed for UUIDs and serial numbers, to distinguish machines of one file");
    app_.add_subcommand("stop", "remove the machine's files");
  }

  void AddChanges() {
    CLI::App* set = app_.add_subcommand("set", "set the utilization and readings of a GPU");
    set->footer(kSetHelp);
    set->add_option("gpu", set_.target, "number, UUID, PCI address, or all")->required();
    set->add_option("settings", set_.settings, "key=value …")->required();

    CLI::App* fault = app_.add_subcommand("fault", "inject a fault");
    fault->footer(kFaultHelp);
    fault->add_option("target", fault_.target, "number, UUID, PCI address, all, driver, or mps")
        ->required();
    fault->add_option("kind", fault_.words, "fault and its arguments")->required();
    fault->add_option("--text", fault_.text, "message of an XID");
    fault->add_option("--instance", fault_.instance, "MIG instance that an XID is about");
    fault->add_option("--count", fault_.count, "number of errors to count, or of calls to fail");
    fault->add_option("--where", fault_.where, "where a lost GPU is reported")
        ->check(CLI::IsMember({"handle", "getter", "both"}))
        ->capture_default_str();
    fault->add_flag("--corrected", fault_.corrected, "corrected ECC errors");
    fault->add_flag("--no-log", fault_.no_log, "an XID without its kernel log line");
    fault->add_flag("--no-event", fault_.no_event, "an XID without its NVML event");
    fault->add_flag("--alone", fault_.alone, "an XID without its consequences");

    CLI::App* clock =
        app_.add_subcommand("clock", "stop, advance or run the clock of the counters");
    clock->footer(kClockHelp);
    clock->add_option("action", clock_.action, "stop, advance or run")
        ->required()
        ->check(CLI::IsMember({"stop", "advance", "run"}));
    clock->add_option("duration", clock_.by, "duration to advance by");

    CLI::App* heal =
        app_.add_subcommand("heal", "remove faults, plug removed GPUs back in, load the driver");
    heal->add_option("target", heal_.target, "number, UUID, PCI address, all, driver, or mps")
        ->required();
    heal->add_option("--driver", heal_.driver,
                     "driver version to load (with target driver or all)");
    heal->add_flag("--module-only", heal_.module_only,
                   "load the driver without its files: a driver container has them");
  }

  CLI::App& app_;
  std::string root_ = DefaultRoot(), output_ = "table", machine_;
  cli::StartOptions start_;
  cli::SetOptions set_;
  cli::FaultOptions fault_;
  cli::HealOptions heal_;
  cli::ClockOptions clock_;
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
