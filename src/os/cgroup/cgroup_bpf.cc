// Assembles BPF instructions and loads them with bpf(2). A program stays below the 4096
// instructions that old kernels accept, so no jump overflows its 16 bits.
#include "os/cgroup/cgroup_bpf.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace penstock::os {
namespace {

// include/linux/kdev_t.h: 12 bits of major, 20 of minor.
constexpr std::uint32_t kMaxMajor = 0xfff;
constexpr std::uint32_t kMaxMinor = 0xfffff;

constexpr std::uint8_t kAnswer = BPF_REG_0;
constexpr std::uint8_t kContext = BPF_REG_1;
constexpr std::uint8_t kAccess = BPF_REG_2;
constexpr std::uint8_t kDevice = BPF_REG_3;
constexpr std::uint8_t kScratch = BPF_REG_4;

// A device number as one number, offset to fit an instruction's signed 32 bits.
constexpr std::int64_t kMinKey = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kMaxKey = std::numeric_limits<std::int32_t>::max();
std::int64_t Key(std::uint32_t major, std::uint32_t minor) {
  return kMinKey + ((std::int64_t{major} << 20) | minor);
}

// The decision from this device number on, until the next step.
struct Step {
  std::int64_t key = 0;
  bool allow = true;
};

bool Holds(std::span<const DeviceRange> ranges, std::int64_t key) {
  return std::ranges::any_of(ranges, [key](const DeviceRange& range) {
    return key >= Key(range.major, range.first_minor) &&
           key <= Key(range.major, std::min(range.last_minor, kMaxMinor));
  });
}

std::vector<Step> StepsOf(const DeviceRules& rules) {
  std::vector<std::int64_t> keys = {kMinKey};
  for (const auto* ranges : {&rules.guarded, &rules.admitted}) {
    for (const DeviceRange& range : *ranges) {
      keys.push_back(Key(range.major, range.first_minor));
      keys.push_back(Key(range.major, std::min(range.last_minor, kMaxMinor)) + 1);
    }
  }
  std::erase_if(keys, [](std::int64_t key) { return key > kMaxKey; });  // beyond the last possible
                                                                        // device number
  std::ranges::sort(keys);
  std::vector<Step> steps;
  for (const std::int64_t key : keys) {
    const bool allow = !Holds(rules.guarded, key) || Holds(rules.admitted, key);
    if (steps.empty() || steps.back().allow != allow) steps.push_back({key, allow});
  }
  return steps;
}

bpf_insn Instruction(int code, std::uint8_t target, std::uint8_t source, std::size_t offset,
                     std::int64_t immediate) {
  bpf_insn instruction{};
  instruction.code = static_cast<std::uint8_t>(code);
  instruction.dst_reg = target & 0xf;
  instruction.src_reg = source & 0xf;
  instruction.off = static_cast<std::int16_t>(offset);
  instruction.imm = static_cast<std::int32_t>(immediate);
  return instruction;
}

bpf_insn Load(std::uint8_t target, std::size_t offset) {
  return Instruction(BPF_LDX | BPF_MEM | BPF_W, target, kContext, offset, 0);
}
bpf_insn Compute(int operation, std::uint8_t target, std::int64_t value) {
  return Instruction(BPF_ALU64 | operation | BPF_K, target, 0, 0, value);
}
bpf_insn ComputeWith(int operation, std::uint8_t target, std::uint8_t source) {
  return Instruction(BPF_ALU64 | operation | BPF_X, target, source, 0, 0);
}
bpf_insn SkipIf(int condition, std::uint8_t left, std::int64_t right, std::size_t instructions) {
  return Instruction(BPF_JMP | condition | BPF_K, left, 0, instructions, right);
}

class Program {
 public:
  // Allows everything but reading and writing of character devices.
  void AllowNonOpening() {
    Add(Compute(BPF_MOV, kAnswer, 1));
    Add(Load(kAccess, offsetof(bpf_cgroup_dev_ctx, access_type)));
    Add(ComputeWith(BPF_MOV, kScratch, kAccess));
    Add(Compute(BPF_AND, kScratch, 0xffff));
    Add(SkipIf(BPF_JEQ, kScratch, BPF_DEVCG_DEV_CHAR, 1));
    Add(Exit());
    Add(Compute(BPF_AND, kAccess, (BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE) << 16));
    Add(SkipIf(BPF_JNE, kAccess, 0, 1));
    Add(Exit());
  }

  void LoadDevice() {
    Add(Load(kDevice, offsetof(bpf_cgroup_dev_ctx, major)));
    Add(Compute(BPF_LSH, kDevice, 20));
    Add(Load(kScratch, offsetof(bpf_cgroup_dev_ctx, minor)));
    Add(ComputeWith(BPF_OR, kDevice, kScratch));
    Add(Compute(BPF_ADD, kDevice, kMinKey));
  }

  // A binary search, since the kernel's verifier takes quadratic time for a long chain of
  // comparisons: 0.7 s for 300 ranges. Refused accesses jump to the code that Refuse or
  // RefuseUnless adds once at the end.
  void Decide(std::span<const Step> steps) {
    if (steps.size() == 1) {
      if (!steps.front().allow) refusals_.push_back(instructions_.size());
      Add(steps.front().allow ? Exit() : Instruction(BPF_JMP | BPF_JA, 0, 0, 0, 0));
      return;
    }
    const std::size_t half = steps.size() / 2;
    const std::size_t jump = instructions_.size();
    Add(SkipIf(BPF_JSGE, kDevice, steps[half].key, 0));
    Decide(steps.first(half));
    ComeFrom(jump);
    Decide(steps.subspan(half));
  }

  void Refuse() {
    if (!TakeRefused()) return;
    Add(Compute(BPF_MOV, kAnswer, 0));
    Add(Exit());
  }

  // Exempts the machine's root and the members of admitted groups from the refusal.
  void RefuseUnless(int admitted) {
    if (!TakeRefused()) return;
    Add(Instruction(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_uid_gid));
    Add(Instruction(BPF_ALU | BPF_MOV | BPF_X, kAnswer, kAnswer, 0,
                    0));  // the lower half only: the user id
    Add(SkipIf(BPF_JNE, kAnswer, 0, 2));
    Add(Compute(BPF_MOV, kAnswer, 1));
    Add(Exit());
    Add(Instruction(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_cgroup_id));
    Add(Instruction(BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, kAnswer, 0, 0));
    instructions_.back().off = -8;
    Add(ComputeWith(BPF_MOV, BPF_REG_2, BPF_REG_10));
    Add(Compute(BPF_ADD, BPF_REG_2, -8));
    Add(Instruction(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, admitted));
    Add(bpf_insn{});
    Add(Instruction(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem));
    Add(SkipIf(BPF_JEQ, kAnswer, 0, 1));
    Add(Compute(BPF_MOV, kAnswer, 1));
    Add(Exit());
  }

  std::vector<bpf_insn> Take() { return std::move(instructions_); }

 private:
  static bpf_insn Exit() { return Instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0); }
  void Add(bpf_insn instruction) { instructions_.push_back(instruction); }
  // Makes a jump lead to the next instruction that is added.
  void ComeFrom(std::size_t jump) {
    instructions_[jump].off = static_cast<std::int16_t>(instructions_.size() - jump - 1);
  }
  // False if nothing is refused: the kernel rejects programs with unreachable instructions.
  bool TakeRefused() {
    for (const std::size_t jump : refusals_) ComeFrom(jump);
    return !refusals_.empty();
  }

  std::vector<bpf_insn> instructions_;
  std::vector<std::size_t> refusals_;  // indices of the jumps of refused accesses
};

// Each range has two ends; each end adds a comparison and a step. The rest is code that is added
// once.
static_assert(4 * kMaxDeviceRanges + 64 <= 4096);

base::Status Check(const DeviceRules& rules) {
  if (rules.guarded.size() + rules.admitted.size() > kMaxDeviceRanges) {
    return Error(Code::kInvalidArgument,
                 std::to_string(rules.guarded.size() + rules.admitted.size()) +
                     " device ranges are more than one program can hold (" +
                     std::to_string(kMaxDeviceRanges) + ")");
  }
  for (const auto* ranges : {&rules.guarded, &rules.admitted}) {
    for (const DeviceRange& range : *ranges) {
      if (range.major <= kMaxMajor && range.first_minor <= range.last_minor &&
          range.first_minor <= kMaxMinor)
        continue;
      return Error(Code::kInvalidArgument, "invalid device range: " + std::to_string(range.major) +
                                               ":" + std::to_string(range.first_minor) + "-" +
                                               std::to_string(range.last_minor));
    }
  }
  return {};
}

template <std::size_t size>
std::uint64_t Address(const std::array<char, size>& text) {
  return reinterpret_cast<std::uint64_t>(text.data());
}

int Bpf(bpf_cmd command, bpf_attr& attributes) {
  return static_cast<int>(::syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

int Load(std::span<const bpf_insn> program) {
  constexpr std::array<char, 11> kLicense = {"Apache-2.0"};
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  attributes.insns = reinterpret_cast<std::uint64_t>(program.data());
  attributes.insn_cnt = static_cast<std::uint32_t>(program.size());
  attributes.license = Address(kLicense);
  return Bpf(BPF_PROG_LOAD, attributes);
}

/// Builds the error from errno.
Error CannotLoad(const std::string& what) {
  switch (errno) {
    case EPERM:
      return {Code::kPermissionDenied,
              "no permission to " + what +
                  ": CAP_BPF and CAP_NET_ADMIN, or CAP_SYS_ADMIN, is required"};
    case EINVAL:
      return {
          Code::kUnimplemented,
          "the kernel does not support device programs: it was built without CONFIG_CGROUP_BPF"};
    case ENOSYS:
      return {Code::kUnimplemented,
              "the kernel does not support bpf(2): it was built without CONFIG_BPF_SYSCALL"};
    default: return ErrnoError(errno, what);
  }
}

}  // namespace

base::Result<std::vector<bpf_insn>> BuildDeviceProgram(const DeviceRules& rules) {
  TRY(Check(rules));
  Program program;
  program.AllowNonOpening();
  program.LoadDevice();
  program.Decide(StepsOf(rules));
  program.Refuse();
  return program.Take();
}

base::Result<std::vector<bpf_insn>> BuildClosingProgram(std::span<const DeviceRange> devices,
                                                        int admitted) {
  const DeviceRules rules{.guarded = {devices.begin(), devices.end()}, .admitted = {}};
  TRY(Check(rules));
  Program program;
  program.AllowNonOpening();
  program.LoadDevice();
  program.Decide(StepsOf(rules));
  program.RefuseUnless(admitted);
  return program.Take();
}

base::Result<UniqueFd> MakeIdMap() {
  constexpr std::uint32_t kMaxIds = 65536;
  bpf_attr attributes{};
  attributes.map_type = BPF_MAP_TYPE_HASH;
  attributes.key_size = sizeof(std::uint64_t);
  attributes.value_size = sizeof(std::uint32_t);
  attributes.max_entries = kMaxIds;
  attributes.map_flags = BPF_F_NO_PREALLOC;
  if (const int fd = Bpf(BPF_MAP_CREATE, attributes); fd >= 0) return UniqueFd(fd);
  return CannotLoad("create a map for a device program");
}

base::Status AddId(int map, std::uint64_t id) {
  const std::uint32_t value = 1;
  bpf_attr attributes{};
  attributes.map_fd = static_cast<std::uint32_t>(map);
  attributes.key = reinterpret_cast<std::uint64_t>(&id);
  attributes.value = reinterpret_cast<std::uint64_t>(&value);
  if (Bpf(BPF_MAP_UPDATE_ELEM, attributes) == 0) return {};
  return ErrnoError(errno, "admit a control group to restricted devices");
}

void RemoveId(int map, std::uint64_t id) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<std::uint32_t>(map);
  attributes.key = reinterpret_cast<std::uint64_t>(&id);
  (void)Bpf(BPF_MAP_DELETE_ELEM, attributes);
}

base::Result<UniqueFd> LoadDeviceProgram(std::span<const bpf_insn> program) {
  int fd = Load(program);
  if (fd < 0 && errno == EPERM) {
    // Before Linux 5.11 programs count against the user's locked memory, 64 KiB by default, and
    // exceeding that limit is also EPERM.
    const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
    fd = ::setrlimit(RLIMIT_MEMLOCK, &unlimited) == 0 ? Load(program) : (errno = EPERM, -1);
  }
  if (fd >= 0) return UniqueFd(fd);
  return CannotLoad("load a device program");
}

base::Result<DevicePrograms> FindDevicePrograms(int group) {
  bpf_attr attributes{};
  attributes.query.target_fd = static_cast<std::uint32_t>(group);
  attributes.query.attach_type = BPF_CGROUP_DEVICE;
  if (Bpf(BPF_PROG_QUERY, attributes) != 0) return ErrnoError(errno, "query the device programs");
  if (attributes.query.prog_cnt == 0) return DevicePrograms::kNone;
  return (attributes.query.attach_flags & BPF_F_ALLOW_MULTI) != 0 ? DevicePrograms::kBeside
                                                                  : DevicePrograms::kAlone;
}

base::Status AttachDeviceProgram(int group, int program) {
  bpf_attr attributes{};
  attributes.target_fd = static_cast<std::uint32_t>(group);
  attributes.attach_bpf_fd = static_cast<std::uint32_t>(program);
  attributes.attach_type = BPF_CGROUP_DEVICE;
  attributes.attach_flags = BPF_F_ALLOW_MULTI;
  if (Bpf(BPF_PROG_ATTACH, attributes) == 0) return {};
  switch (errno) {
    case EPERM:
      return Error(Code::kPermissionDenied,
                   "no permission to attach a device program: CAP_NET_ADMIN is required, and no "
                   "parent group may have an exclusive program");
    case EINVAL:
      return Error(
          Code::kUnimplemented,
          "the kernel cannot attach device programs: it was built without CONFIG_CGROUP_BPF");
    default: return ErrnoError(errno, "attach a device program");
  }
}

base::Result<UniqueFd> LinkDeviceProgram(int group, int program) {
  bpf_attr attributes{};
  attributes.link_create.prog_fd = static_cast<std::uint32_t>(program);
  attributes.link_create.target_fd = static_cast<std::uint32_t>(group);
  attributes.link_create.attach_type = BPF_CGROUP_DEVICE;
  if (const int fd = Bpf(BPF_LINK_CREATE, attributes); fd >= 0) return UniqueFd(fd);
  switch (errno) {
    case EPERM:
      return Error(Code::kPermissionDenied,
                   "no permission to attach a device program: CAP_NET_ADMIN is required, and "
                   "neither this group nor a parent group may have an exclusive program");
    case EINVAL:
      return Error(
          Code::kUnimplemented,
          "the kernel does not support links of device programs (Linux 5.7 or newer is required)");
    default: return ErrnoError(errno, "attach a device program");
  }
}

}  // namespace penstock::os
