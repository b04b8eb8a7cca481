// Implements the verbs set, fault, heal and clock, which change a running machine.
#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>

#include "base/core/quantity.h"
#include "base/core/strings.h"
#include "sim/cli.h"
#include "sim/control.h"
#include "sim/machine.h"
#include "sim/settings_table.h"

namespace penstock::sim::cli {
namespace {

Error Usage(const std::string& message) {
  return {Code::kInvalidArgument, message + "; see penstock-sim fault --help"};
}

base::Result<Control> OpenControl(const std::string& root) {
  ASSIGN(const Assets assets, FindAssets());
  return Control::Open(root, assets);
}

base::Result<std::uint32_t> Number(const std::string& text, const std::string& what,
                                   std::uint32_t most) {
  const auto number = base::ParseUint(text);
  if (!number || *number > most) return Usage("\"" + text + "\" is not a valid " + what);
  return static_cast<std::uint32_t>(*number);
}

Status ForEach(Control& control, const std::string& target,
               const std::function<Status(std::uint32_t)>& act) {
  ASSIGN(const auto gpus, control.Find(target));
  for (const std::uint32_t gpu : gpus) TRY(act(gpu));
  return {};
}

// "all" is one entry that affects all GPUs and calls without a GPU; otherwise each GPU gets its own
// entry.
Status ForEachOrAll(Control& control, const std::string& target,
                    const std::function<Status(std::int32_t)>& act) {
  if (target == "all") return act(-1);
  return ForEach(control, target,
                 [&](std::uint32_t gpu) { return act(static_cast<std::int32_t>(gpu)); });
}

std::string CallName(const std::string& word) { return word == "all" ? "" : word; }

Status Hang(Control& control, const FaultOptions& options) {
  std::string call;
  std::uint32_t milliseconds = 0;
  for (std::size_t i = 1; i < options.words.size(); i++) {
    const std::string& word = options.words[i];
    if (word == "forever") continue;
    if (!word.empty() && word[0] >= '0' && word[0] <= '9') {
      ASSIGN(milliseconds, Number(word, "number of milliseconds", 3600000));
    } else {
      call = CallName(word);
    }
  }
  if (options.count && milliseconds == 0)
    return Usage("a hang without a duration lasts until it is healed; --count needs milliseconds");
  return ForEachOrAll(control, options.target, [&](std::int32_t gpu) {
    return control.FaultCall(gpu, call, kSimFaultHang, milliseconds, 0, options.count);
  });
}

Status FailCall(Control& control, const FaultOptions& options) {
  if (options.words.size() != 3) return Usage("error needs a call (or all) and a code");
  ASSIGN(const std::uint32_t code, Number(options.words[2], "code of nvmlReturn_t", 999));
  if (code == 0) return Usage("code 0 is success");
  return ForEachOrAll(control, options.target, [&](std::int32_t gpu) {
    return control.FaultCall(gpu, CallName(options.words[1]), kSimFaultError, 0, code,
                             options.count);
  });
}

// Parses value=NUMBER status=CODE type=NAME.
base::Result<Control::FieldFault> FieldFaultOf(const std::vector<std::string>& words) {
  const std::vector<std::string> types = {"double",   "uint", "ulong", "ulonglong",
                                          "longlong", "int"};  // in the order of nvmlValueType_t
  Control::FieldFault fault;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals),
                      value = equals == std::string::npos ? "" : word.substr(equals + 1);
    const auto type = std::find(types.begin(), types.end(), value);
    if (key == "value") {
      fault.value = base::ParseUint(value);
      if (!fault.value) return Usage("value needs the number that the 8 bytes represent");
    } else if (key == "status") {
      ASSIGN(fault.status, Number(value, "code of nvmlReturn_t", 999));
    } else if (key == "type" && type != types.end()) {
      fault.type = static_cast<std::uint32_t>(type - types.begin());
    } else {
      return Usage("a fault of a field is value=NUMBER, status=CODE or type=" +
                   base::Join(types, "|"));
    }
  }
  if (words.empty())
    return Usage("a fault of a field is value=NUMBER, status=CODE or type=" +
                 base::Join(types, "|"));
  return fault;
}

Status FieldFault(Control& control, const FaultOptions& options) {
  if (options.words.size() < 3) return Usage("field needs NVML's field number and the fault");
  ASSIGN(const std::uint32_t field, Number(options.words[1], "field number", 9999));
  ASSIGN(const Control::FieldFault fault,
         FieldFaultOf({options.words.begin() + 2, options.words.end()}));
  return ForEachOrAll(control, options.target, [&](std::int32_t gpu) {
    return control.FaultField(gpu, field, fault, options.count);
  });
}

// Parses READING=NUMBER …
Status Nonsense(Control& control, const FaultOptions& options) {
  if (options.words.size() < 2) return Usage("nonsense needs READING=NUMBER");
  for (std::size_t i = 1; i < options.words.size(); i++) {
    const std::string& word = options.words[i];
    const std::size_t equals = word.find('=');
    ASSIGN(const SimReading reading, ReadingOf(word.substr(0, equals)));
    const auto value =
        equals == std::string::npos ? std::nullopt : base::ParseUint(word.substr(equals + 1));
    if (!value) return Usage("\"" + word + "\" needs a number after \"=\"");
    TRY(ForEach(control, options.target,
                [&](std::uint32_t gpu) { return control.Nonsense(gpu, reading, *value); }));
  }
  return {};
}

Status DriverFault(Control& control, const std::vector<std::string>& words) {
  if (words[0] == "unload" && words.size() == 1) return control.UnloadDriver();
  if (words[0] == "uninstall" && words.size() == 1) return control.UninstallDriver();
  if (words[0] == "mismatch" && words.size() <= 2) {
    const std::string version = words.size() == 2 ? words[1] : "";
    if (!version.empty() && !IsDriverVersion(version))
      return Usage("\"" + version + "\" is not a driver version");
    return control.MismatchDriver(version);
  }
  return Usage("faults of the driver: unload, uninstall, mismatch [VERSION]");
}

Status MpsFault(Control& control, const std::vector<std::string>& words) {
  if (words.size() != 1) return Usage("faults of MPS: hang, exit, nonsense, die");
  if (words[0] == "die") return control.KillMps();
  if (words[0] == "hang" || words[0] == "exit" || words[0] == "nonsense")
    return control.FaultMps(words[0]);
  return Usage("faults of MPS: hang, exit, nonsense, die");
}

Status XidFault(Control& control, const FaultOptions& options) {
  if (options.words.size() != 2) return Usage("xid needs a number");
  ASSIGN(const std::uint32_t xid, Number(options.words[1], "XID", 9999));
  const auto instance =
      options.instance.empty() ? XidInstance{} : ParseXidInstance(options.instance);
  if (!instance) return Usage("an instance is GPU_INSTANCE or GPU_INSTANCE/COMPUTE_INSTANCE");
  const Control::XidOptions xid_options{options.text, !options.no_log, !options.no_event,
                                        !options.alone, *instance};
  return ForEach(control, options.target,
                 [&](std::uint32_t gpu) { return control.Xid(gpu, xid, xid_options); });
}

Status Act(Control& control, const FaultOptions& options) {
  if (options.target == "driver") return DriverFault(control, options.words);
  if (options.target == "mps") return MpsFault(control, options.words);
  const std::string& kind = options.words[0];
  const auto each = [&](const std::function<Status(std::uint32_t)>& act) {
    return ForEach(control, options.target, act);
  };
  // Either all GPUs can have the fault, or nothing happens.
  if (kind == "ecc") TRY(each([&](std::uint32_t gpu) { return control.CheckEcc(gpu); }));
  if (kind.starts_with("remap-"))
    TRY(each([&](std::uint32_t gpu) { return control.CheckRemap(gpu); }));
  if (kind == "xid") return XidFault(control, options);
  if (kind == "hang") return Hang(control, options);
  if (kind == "error") return FailCall(control, options);
  if (kind == "field") return FieldFault(control, options);
  if (kind == "nonsense") return Nonsense(control, options);
  if (kind == "recovery-action") {
    const auto action =
        options.words.size() == 2 ? RecoveryActionNumber(options.words[1]) : std::nullopt;
    if (!action)
      return Usage("recovery-action needs one of " + base::Join(RecoveryActionNames(), ", "));
    return each([&](std::uint32_t gpu) { return control.SetRecoveryAction(gpu, *action); });
  }
  if (options.words.size() != 1) return Usage(kind + " takes no argument");
  if (kind == "ecc")
    return each([&](std::uint32_t gpu) {
      return control.EccErrors(gpu, options.count ? options.count : 1, options.corrected);
    });
  if (kind == "remap-pending")
    return each([&](std::uint32_t gpu) { return control.Remap(gpu, false); });
  if (kind == "remap-failure")
    return each([&](std::uint32_t gpu) { return control.Remap(gpu, true); });
  if (kind == "junk-samples")
    return each([&](std::uint32_t gpu) { return control.JunkProcessSamples(gpu); });
  if (kind == "remove") return each([&](std::uint32_t gpu) { return control.Unplug(gpu); });
  if (kind == "lost") {
    const std::uint32_t where = options.where == "handle"   ? kSimLostInHandle
                                : options.where == "getter" ? kSimLostInGetter
                                                            : kSimLostInHandle | kSimLostInGetter;
    return each([&](std::uint32_t gpu) { return control.Lose(gpu, where); });
  }
  const std::vector<std::string> kinds = {"xid",   "ecc",    "remap-pending",   "remap-failure",
                                          "lost",  "remove", "recovery-action", "hang",
                                          "error", "field",  "nonsense",        "junk-samples"};
  const auto near = base::Nearest(kind, kinds);
  return Usage("unknown fault \"" + kind + "\"" + (near ? "; did you mean " + *near + "?" : ""));
}

Status HealTarget(Control& control, const HealOptions& options) {
  const bool all = options.target == "all", driver = options.target == "driver";
  if (options.target == "mps" || all) TRY(control.FaultMps(""));
  if (options.target == "mps") return {};
  if (!options.driver.empty() && !all && !driver)
    return Usage("--driver requires the target driver or all");
  if (options.module_only && !driver) return Usage("--module-only requires the target driver");
  if (!driver)
    TRY(ForEach(control, options.target, [&](std::uint32_t gpu) { return control.HealGpu(gpu); }));
  if (all) TRY(control.HealCalls());
  if (all || driver) return control.LoadDriver(options.driver, options.module_only);
  return {};
}

}  // namespace

int Set(const SetOptions& options) {
  auto control = OpenControl(options.root);
  if (!control.ok()) return Fail(control.error());
  const auto gpus = control->Find(options.target);
  if (!gpus.ok()) return Fail(gpus.error());
  const Status status = control->Set(*gpus, options.settings);
  return status.ok() ? kOk : Fail(status.error());
}

int Fault(const FaultOptions& options) {
  auto control = OpenControl(options.root);
  if (!control.ok()) return Fail(control.error());
  const Status status = Act(*control, options);
  return status.ok() ? kOk : Fail(status.error());
}

int Clock(const ClockOptions& options) {
  auto control = OpenControl(options.root);
  if (!control.ok()) return Fail(control.error());
  if (options.action == "stop" || options.action == "run") {
    if (!options.by.empty())
      return Fail({Code::kInvalidArgument, "clock " + options.action + " takes no duration"});
    const Status status = options.action == "stop" ? control->StopClock() : control->RunClock();
    return status.ok() ? kOk : Fail(status.error());
  }
  const auto by = base::ParseDuration(options.by);
  if (!by.ok())
    return Fail(
        {Code::kInvalidArgument, "clock advance needs a duration: " + by.error().message()});
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(*by).count();
  if (microseconds < 0)
    return Fail({Code::kInvalidArgument, "the clock can only be advanced forward"});
  const Status status = control->AdvanceClock(static_cast<std::uint64_t>(microseconds));
  return status.ok() ? kOk : Fail(status.error());
}

int Heal(const HealOptions& options) {
  if (!options.driver.empty() && !IsDriverVersion(options.driver))
    return Fail({Code::kInvalidArgument, "--driver " + options.driver +
                                             ": is not a driver version; use the form 550.54.15"});
  auto control = OpenControl(options.root);
  if (!control.ok()) return Fail(control.error());
  const Status status = HealTarget(*control, options);
  return status.ok() ? kOk : Fail(status.error());
}

}  // namespace penstock::sim::cli
