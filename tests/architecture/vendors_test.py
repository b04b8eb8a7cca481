#!/usr/bin/env python3
"""Refuses the names of vendors outside the code that is theirs: src/backend/<vendor>, and folders named after a vendor, as those of src/api/compat for what users of
a vendor's programs write. A vendor has one row in src/backend/vendors.inc, and its removal leaves nothing but what the exceptions below say. The command line
(src/app/penstock) speaks its users' words: GPUs, the examples and explanations of its help, and `penstock mig`, whose folder is NVIDIA's.

usage: vendors_test.py [SOURCE_DIR]"""
import re
import sys
from pathlib import Path

root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()

# Modules that know no vendor, but for what EXCEPTIONS lists.
NEUTRAL = ("src/base", "src/os", "src/device", "src/node", "src/view", "src/protocol", "src/adapter", "src/analysis", "src/api", "src/operator",
           "src/app/agent", "src/app/command", "src/app/devices", "src/app/operator", "src/app/penstock", "src/app/probe", "src/app/worker", "hook/runtime")
# Code that speaks to users in their words.
COMMAND_LINE = "src/app/penstock"
# Likewise, without the folders that are beside these files.
NEUTRAL_FILES = ("src/app/*", "src/backend/config_terms.*", "src/backend/counter_fields.*", "hook/*")


def word(text: str) -> str:
    """A short word wherever it stands by itself: mig_parts, migStrategy, FindMig, kMig, MIG; but not within another word, as in migrate or RLIMIG."""
    return rf"(?<![A-Za-z]){text}s?(?![a-z])|(?<![A-Z]){text.capitalize()}s?(?![a-z])|(?<![A-Z]){text.upper()}s?(?![A-Za-z])"


# Folders and words of vendors: their own names, their libraries, programs and error codes. ROCm is not in sigprocmask.
VENDORS = ("nvidia", "amd", "intel", "gaudi")
OF_A_VENDOR = {*VENDORS, "mig"}
SHORT = "|".join(map(word, ("mps", "mig", "xid", "sxid", "amd(?!64)")))
WORDS = re.compile(rf"nvidia|nvml|cuda|dcgm|(?<!sigp)rocm|habana|gaudi|acme|\bGPUs?\b|(?-i:{SHORT})", re.I)

# File -> what it may say, and why. A row that matches nothing any more must be removed.
EXCEPTIONS = {
    "src/adapter/pages/page/format.js": (r'"GPU"', "a kind of device"),
    "src/os/cpu_features.cc": (r"NVIDIA|(?i:amd)", "processors"),
    "src/device/model.cc": (r"GPU", "a kind of device"),
    "src/device/codec.cc": (r"gpu", "a kind of device"),
    "src/device/sharing.cc": (r"mps", "the word of labels, metrics and records for a server of the driver"),
    "src/node/ledger/slot_fields.h": (r"mps", "checkpoints have the same word"),
    "src/node/lease/queue_checkpoint.cc": (r"gpus", "a key of files on disk"),
    "src/protocol/broker/protocol.cc": (r"gpus", "a key of requests of earlier versions"),
    "src/protocol/engine/links.cc": (r"gpus|nvidia-runtime-hook-path|amd|AMD's|kAmdRuntime", "docker --gpus looks for programs of these names"),
    "src/protocol/engine/links.h": (r"nvidia-container-runtime-hook|nvidia-cdi-hook", "docker --gpus looks for programs of these names"),
    "src/protocol/engine/apply/engine_configurator.cc": (r"gpus", "docker's option"),
    "src/analysis/doctor/doctor.h": (r"nvidia_config", "one of the files that are examined"),
    "src/api/cluster/driver.h": (r'"gpu"', "a type of NVIDIADriver"),
    "src/api/cluster/driver_descriptions.cc": (r"Default: gpu\.|virtual GPUs", "a type of NVIDIADriver, and what its license is for"),
    "src/api/cluster/driver_fields.h": (r'"gpu"', "a type of NVIDIADriver"),
    "src/api/cluster/penstock.h": (r"/run/nvidia/driver", "the root of NVIDIA's driver container"),
    "src/api/cluster/penstock_descriptions.cc": (r"health of GPUs|AMD's (own device plugin|exporter|Device Config Manager)|amd-metrics-exporter|nvidia\.com/device-plugin\.config|"
                                                 r"mig-parted|dcgm-metrics\.csv",
                                                 "files of vendors' programs that a key is for"),
    "src/api/compat/policy_kinds.cc": (r'"nvidia-(driver|gpu-driver|vgpu)-"|"(nvidia|amd)\.com"|"amd"|"nvidiadrivers"|"NVIDIADriver"|TranslateNvidiaDriver|amd\.node\.kubernetes\.io/|'
                                       r'"nvidia\.com/(mig\.\w+|gpu\.deploy\.mig-manager)"|"nvidia-dcgm(-exporter)?"|"nvidia-node-status-exporter"|"gpu-metrics"|"dcgm"',
                                       "the list of the vendors' resources, a row each"),
    "src/api/config/node_config.h": (r"kAsNvidia", "a value that users write (docs/adr/0039)"),
    "src/api/config/node_config_check_containers.cc": (r"enable-cuda-compat", "the name of a hook in users' files"),
    "src/api/config/node_config_check_sharing.cc": (r"nvidia\.com/gpu", "an example of a resource"),
    "src/api/config/node_config_check_telemetry.cc": (r"dcgm(-4\.7)?", "a set of names of metrics"),
    "src/api/config/node_config_keys.cc": (r'"mps"|strategy: mps|"dcgm(-4\.7)?"|"as-nvidia"|kAsNvidia|perUser\.gpus',
                                           "values that users write (docs/adr/0039)"),
    "src/api/metrics_families.cc": (r'NVIDIA(?=: )|metrics-nvidia|nvidia-smi|GPU-Util|MIG device|(partitioned|newer) GPUs|`mps`|MPS server|kind=\\"xid\\"',
                                    "what a value is where users know it from"),
    "src/operator/agent_config.cc": (r"dcgm-metrics\.csv", "the name that users' ConfigMaps have"),
    "src/operator/agent_config.h": (r"amd-metrics-exporter|kAmdHealthFolder", "a folder of AMD's exporter that its device plugin reads"),
    "src/operator/agent_daemon_set.cc": (r'"mps"|"nvidia"|"amd-health"|kAmdHealthFolder', "volumes of the agent's pod"),
    "src/operator/driver/driver_daemon_set.cc": (r"nvidia\.com/gpu|nvidia-(driver|vgpu-manager|peermem|smi)|nvidia_peermem|/(run|module)/nvidia|NVIDIA_VISIBLE_DEVICES",
                                                 "NVIDIA's driver container, the only one that is rolled out"),
    "src/operator/driver/driver_daemon_set.h": (r"/run/nvidia/driver|nvidia-driver-ctr", "NVIDIA's driver container"),
    "src/operator/driver/driver_rollout.cc": (r"component=nvidia-driver", "the label of pods of NVIDIA's driver container"),
    "src/operator/driver/driver_volumes.cc": (r"run-nvidia(-\w+)?|/run/nvidia(-\w+)?|nvidia-topologyd\.conf|/etc/nvidia/", "folders of NVIDIA's driver container"),
    "src/operator/driver/image_check.cc": (r"nvidia-driver-image-", "the name of a pod with NVIDIA's driver container"),
    "src/operator/driver/ownership.cc": (r"NVIDIADrivers", "a kind of users' objects"),
    "src/operator/driver/pools.cc": (r"nvidia-(?=driver-daemonset|\")", "names of DaemonSets, as NVIDIA's operator gives them"),
    "src/app/agent_command.cc": (r"/run/nvidia/driver", "an example of a driver's root"),
    "src/app/options.cc": (r"NVIDIA's (device|plugin|dcgm-exporter)|dcgm-exporter|GPU Feature Discovery|--nvidia-(driver|dev)-root|nvml-library|"
                           r'libnvidia-ml\.so\.1|"nvidia"|is_nvidias|as-nvidia|kAsNvidia',
                           "the agent takes the options and files of vendors' programs, whose own readers are in src/api/compat"),
    "src/app/operator/command_line.cc": (r"gpu-operator", "an example of a namespace"),
    "src/app/worker/main.cc": (r"nvml-library", "an option of earlier versions"),
    "src/app/penstock/cdi/cdi.cc": (r"NVIDIA_CTK_CDI_SPEC_DIRS", "a variable of nvidia-ctk"),
    "src/app/penstock/cdi/cdi_generate.cc": (r"/etc/nvidia-container-runtime/config\.toml", "a file of nvidia-ctk's users"),
    "src/app/penstock/cdi/cdi_generate_options.cc": (r"nvidia-ctk|NVIDIA_CTK_\w+|(management\.)?nvidia\.com(/gpu)?|--nvidia-(cdi-hook|ctk)-path|\"nvml\"|nvidia-container-cli|CUDA's",
                                                     "the options and files of nvidia-ctk cdi generate"),
    "src/app/penstock/cluster/cleanup.cc": (r"NVIDIADriver", "a kind of users' objects"),
    "src/app/penstock/cluster/cleanup_host.cc": (r"layout-amd\.json", "a file that agents write"),
    "src/app/penstock/cluster/cleanup_operator.cc": (r"(\w+\.)?(nvidia|amd)\.com|nvidiadrivers|NVIDIADriver", "kinds of users' objects"),
    "src/app/penstock/cluster/cluster_verbs.cc": (r"NVIDIADriver", "a kind of users' objects"),
    "src/app/penstock/cluster/support_bundle.cc": (r"(nvidia|amd)\.com|nvidiadrivers|NVIDIADriver", "kinds of users' objects"),
    "src/app/penstock/common/program.cc": (r"(k|Define)?MigParted(Name|Verbs)?|as_mig_parted|MIG_PARTED_\w+|MigVerb|\bmig\b|penstock mig|MIG devices|NVIDIA's", "`penstock mig`, which is also NVIDIA's program"),
    "src/app/penstock/common/program.h": (r"DefineMigParted", "`penstock mig`, which is also NVIDIA's program"),
    "src/app/penstock/common/simulation.cc": (r'MpsRoot|/mps|--mps-root|"nvidia"', "the simulated machine is NVIDIA's"),
    "src/app/penstock/common/verbs.h": (r"kMigPartedName|nvidia-mig-parted|as_mig_parted|MigVerb", "`penstock mig`, which is also NVIDIA's program"),
    "src/app/penstock/config/check_layouts.cc": (r"MigDialect|TranslateMigParted", "files of mig-parted are checked"),
    "src/app/penstock/config/config.cc": (r"dcgm-exporter|mig-parted|kRocm\w+|(Check|LooksLike)MigParted|NVIDIA's", "files of vendors' programs are checked"),
    "src/app/penstock/config/config_documents.cc": (r"dcgmExporter", "a key of a chart's values"),
    "src/app/penstock/driver/prepare.cc": (r"nvidia\.com/gpu\.deploy\.driver", "a label that users set"),
    "src/app/penstock/local/run.cc": (r"--mig|MIG devices?|CUDA program|MPS", "an option for MIG devices"),
    "src/app/penstock/main.cc": (r"(Run|Define|k)MigParted(Name)?", "`penstock mig`, which is also NVIDIA's program"),
    "src/app/penstock/metrics/metrics.cc": (r"dcgm(-4\.7)?|DCGM_FI_\w+", "a set of names of metrics"),
    "src/app/penstock/migrate/migrate_show.cc": (r'"nvidia"', "a direction of the way"),
    "src/app/penstock/migrate/migrate_verb.cc": (r'"(nvidia|amd)\.com"|"nvidia"|kToNvidia|penstock or nvidia|NVIDIA\'s|ROCm\'s', "the programs from which users come"),
    "src/app/penstock/runtime/doctor_gather.cc": (r"/proc/driver/nvidia/version|98-nvidia\.sh|kNvidiaConfig|nvidia_config|/etc/nvidia-container-runtime/config\.toml|nvidia-container-cli",
                                                  "the files that are examined"),
    "src/app/penstock/runtime/runtime_configure.cc": (r'--nvidia-[\w-]+|"nvidia"|\[nvidia\]', "the options of nvidia-ctk runtime configure"),
    "hook/commands.cc": (r"(Run|Enable)?CudaCompat|enable-cuda-compat|cuda-compat-container-root|host-cuda-version|cuda_version|CUDA compatibility|"
                         r"the container's GPUs|requests GPUs|docker's --gpus|nvidia-(cdi-hook|ctk|container-runtime-hook)",
                         "the table of hooks, of which some are only for this vendor's containers"),
    "hook/hooks.h": (r"(Enable)?CudaCompat|cuda_version|/usr/local/cuda/compat|/proc/driver/nvidia/params", "hooks that are only for this vendor's containers"),
    "hook/runtime/create.cc": (r"AmdEdits|nvidia\.yaml|nvidia\.com/compat32|cuda_compat|enable-cuda-compat", "what only this vendor's containers have"),
    "hook/runtime/low_level.cc": (r"nvidia-container-runtime", "keys of its configuration file"),
    "hook/runtime/main.cc": (r"nvidia-container-runtime\.\w+", "the names under which engines call it"),
}

TOKEN = re.compile(r'(?P<raw>R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)")|(?P<text>"(?:\\.|[^"\\\n])*")|(?<!\w)\'(?:\\.|[^\'\\\n])+\'|`(?:\\.|[^`\\])*`|(?P<comment>//[^\n]*|/\*.*?\*/)', re.S)


def code(text: str, help_too: bool = True) -> str:
    """The text with its comments blanked, line by line; without `help_too` also its raw strings."""
    return TOKEN.sub(lambda match: re.sub(r"[^\n]", " ", match.group()) if match["comment"] or match["raw"] and not help_too else match.group(), text)


def is_neutral(path: Path) -> bool:
    below = path.relative_to(root)
    listed = str(below).startswith(tuple(f"{folder}/" for folder in NEUTRAL)) or any(below.match(files) for files in NEUTRAL_FILES)
    return listed and not OF_A_VENDOR & set(below.parts[:-1]) and not {"testing", "fake"} & set(below.parts) and not path.name.endswith("_test.cc")


def findings(path: Path, text: str, used: set[str]) -> list[str]:
    name = str(path.relative_to(root))
    allowed, _ = EXCEPTIONS.get(name, (None, ""))
    found = []
    for_users = name.startswith(f"{COMMAND_LINE}/")
    for number, line in enumerate(code(text, help_too=not for_users).split("\n"), 1):
        if line.lstrip().startswith("#include"):
            continue
        kept = line
        if allowed and re.search(allowed, line):
            used.add(name)
            kept = re.sub(allowed, "", line)
        found += [f"{name}:{number}: \"{match.group()}\"" for match in WORDS.finditer(kept) if not (for_users and re.fullmatch(r"GPUs?", match.group(), re.I))]
    return found


def self_test():
    """Verifies that the check itself can fail."""
    assert code('int a;  // nvidia\nf("x // nvidia");') == 'int a;           \nf("x // nvidia");'
    assert code('f(`http://${amd}`);  // nvidia') == "f(`http://${amd}`);           "
    assert findings(root / "src/node/x.cc", 'f("nvidia");\n// nvidia\nkMps;', set()) == ['src/node/x.cc:1: "nvidia"', 'src/node/x.cc:3: "Mps"']
    assert findings(root / "src/app/penstock/x.cc", 'f("GPU");\nR"(nvidia)";\nf("nvidia");', set()) == ['src/app/penstock/x.cc:3: "nvidia"']
    assert not findings(root / "src/node/x.cc", "sigprocmask();", set()) and findings(root / "src/node/x.cc", "ToRocm();", set())
    for vendors in ("mig_parts", "config.mig_parts_", "host_mps_root", "migStrategy", "FindMig()", "kMigs", "MIG", "XIDs", "last_xid", "kSxid", "amd_root"):
        assert WORDS.search(vendors), vendors
    for neutral in ("migrate", "Migrate", "MIGRATE", "emigrate", "amps", "kLamps", "maxid", "MaxId", "amd64", "AMD64", "damd"):
        assert not WORDS.search(neutral), neutral
    assert is_neutral(root / "src/api/compat/x.cc") and not is_neutral(root / "src/api/compat/amd/x.cc")
    assert is_neutral(root / "src/node/x.cc") and not is_neutral(root / "src/analysis/migrate/nvidia/x.cc") and not is_neutral(root / "src/backend/all.h")
    assert is_neutral(root / "src/app/options.cc") and is_neutral(root / "src/app/penstock/local/run.cc") and not is_neutral(root / "src/app/penstock/mig/mig.cc") and is_neutral(root / "src/backend/counter_fields.h")
    assert is_neutral(root / "hook/commands.cc") and not is_neutral(root / "hook/nvidia/prestart.cc") and is_neutral(root / "hook/runtime/create.cc")


self_test()
sources = [path for top in ("src", "hook") for path in sorted((root / top).rglob("*")) if path.suffix in (".h", ".cc", ".js") and is_neutral(path)]
assert sources, f"no sources under {root}"
used: set[str] = set()
problems = [finding for path in sources for finding in findings(path, path.read_text(), used)]
problems += [f"{name}: the exception for it is not needed" for name in sorted(set(EXCEPTIONS) - used)]
for problem in problems:
    print(problem)
if problems:
    print(f"\n{len(problems)} names of vendors in modules that know none: move the code into a folder of the vendor, or ask its dialect")
sys.exit(bool(problems))
