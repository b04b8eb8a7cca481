// Tests the device program's decisions with a small interpreter; tests/integration/cgroup_test.cc
// tests that the kernel agrees.
#include "os/cgroup/cgroup_bpf.h"

#include <array>
#include <cstring>
#include <set>

#include <gtest/gtest.h>

namespace penstock::os {
namespace {

constexpr std::uint32_t kReadChar = (BPF_DEVCG_ACC_READ << 16) | BPF_DEVCG_DEV_CHAR;
constexpr std::uint32_t kWriteChar = (BPF_DEVCG_ACC_WRITE << 16) | BPF_DEVCG_DEV_CHAR;
constexpr std::uint32_t kMakeChar = (BPF_DEVCG_ACC_MKNOD << 16) | BPF_DEVCG_DEV_CHAR;
constexpr std::uint32_t kReadBlock = (BPF_DEVCG_ACC_READ << 16) | BPF_DEVCG_DEV_BLOCK;

// What the kernel's helpers report about the process that opens the device.
struct Opener {
  std::uint32_t uid = 1000;
  std::uint64_t group = 77;
  std::set<std::uint64_t> admitted = {};
};

// Interprets the instructions that these programs use; any other instruction fails the test.
int Decide(const std::vector<bpf_insn>& program, std::uint32_t access, std::uint32_t major,
           std::uint32_t minor, const Opener& opener = {}) {
  const bpf_cgroup_dev_ctx context{access, major, minor};
  std::array<std::uint64_t, 11> registers{};
  std::uint64_t stack = 0;
  const auto call = [&](int helper) -> std::uint64_t {
    if (helper == BPF_FUNC_get_current_uid_gid) return std::uint64_t{100} << 32 | opener.uid;
    if (helper == BPF_FUNC_get_current_cgroup_id) return opener.group;
    EXPECT_EQ(helper, BPF_FUNC_map_lookup_elem);
    return opener.admitted.contains(stack) ? 1 : 0;
  };
  for (std::size_t at = 0; at < program.size(); ++at) {
    const bpf_insn& instruction = program[at];
    auto& target = registers[instruction.dst_reg];
    const auto value = static_cast<std::uint64_t>(std::int64_t{instruction.imm});
    const auto skip = static_cast<std::size_t>(instruction.off);
    std::uint32_t word = 0;
    switch (instruction.code) {
      case BPF_LDX | BPF_MEM | BPF_W:
        std::memcpy(&word, reinterpret_cast<const char*>(&context) + instruction.off, sizeof word);
        target = word;
        break;
      case BPF_ALU64 | BPF_MOV | BPF_X: target = registers[instruction.src_reg]; break;
      case BPF_ALU64 | BPF_MOV | BPF_K: target = value; break;
      case BPF_ALU64 | BPF_AND | BPF_K: target &= value; break;
      case BPF_ALU64 | BPF_ADD | BPF_K: target += value; break;
      case BPF_ALU64 | BPF_LSH | BPF_K: target <<= value; break;
      case BPF_ALU64 | BPF_OR | BPF_X: target |= registers[instruction.src_reg]; break;
      case BPF_JMP | BPF_JA: at += skip; break;
      case BPF_JMP | BPF_JEQ | BPF_K: at += target == value ? skip : 0; break;
      case BPF_JMP | BPF_JNE | BPF_K: at += target != value ? skip : 0; break;
      case BPF_JMP | BPF_JSGE | BPF_K:
        at += static_cast<std::int64_t>(target) >= instruction.imm ? skip : 0;
        break;
      case BPF_ALU | BPF_MOV | BPF_X:
        target = static_cast<std::uint32_t>(registers[instruction.src_reg]);
        break;
      case BPF_STX | BPF_MEM | BPF_DW: stack = registers[instruction.src_reg]; break;
      case BPF_LD | BPF_DW | BPF_IMM: ++at; break;
      case BPF_JMP | BPF_CALL: registers[0] = call(instruction.imm); break;
      case BPF_JMP | BPF_EXIT: return static_cast<int>(registers[0]);
      default:
        ADD_FAILURE() << "instruction " << at << " has code " << int{instruction.code};
        return -1;
    }
  }
  ADD_FAILURE() << "the program continues past its end";
  return -1;
}

TEST(ClosingProgram, RefusesDevicesToAllButRootAndAdmittedGroups) {
  const std::vector<DeviceRange> devices = {{195, 0, 253}, {226, 1, 1}, {226, 129, 129}};
  const auto program = BuildClosingProgram(devices, 3);
  ASSERT_TRUE(program.ok());
  const Opener root{.uid = 0}, member{.group = 78, .admitted = {78, 79}},
      stranger{.group = 77, .admitted = {78, 79}};
  for (const auto& [major, minor] : {std::pair{195u, 0u}, {195u, 253u}, {226u, 1u}, {226u, 129u}}) {
    EXPECT_EQ(Decide(*program, kReadChar, major, minor, stranger), 0);
    EXPECT_EQ(Decide(*program, kWriteChar, major, minor, stranger), 0);
    EXPECT_EQ(Decide(*program, kReadChar, major, minor, root), 1);
    EXPECT_EQ(Decide(*program, kReadChar, major, minor, member), 1);
    EXPECT_EQ(Decide(*program, kMakeChar, major, minor, stranger), 1);
  }
  for (const auto& [major, minor] : {std::pair{195u, 254u}, {226u, 0u}, {226u, 128u}, {1u, 3u}})
    EXPECT_EQ(Decide(*program, kReadChar, major, minor, stranger), 1);
}

TEST(ClosingProgram, HoldsAsManyRangesAndStaysSmall) {
  std::vector<DeviceRange> devices;
  for (std::uint32_t i = 0; i < kMaxDeviceRanges; ++i) devices.push_back({500, 2 * i, 2 * i});
  const auto program = BuildClosingProgram(devices, 3);
  ASSERT_TRUE(program.ok());
  EXPECT_LE(program->size(), 4096u);  // BPF_MAXINSNS
  for (std::uint32_t i = 0; i < kMaxDeviceRanges; ++i) {
    ASSERT_EQ(Decide(*program, kReadChar, 500, 2 * i), 0);
    ASSERT_EQ(Decide(*program, kReadChar, 500, 2 * i, {.uid = 0}), 1);
    ASSERT_EQ(Decide(*program, kReadChar, 500, 2 * i, {.admitted = {77}}), 1);
    ASSERT_EQ(Decide(*program, kReadChar, 500, 2 * i + 1), 1);
  }
  devices.push_back({1, 1, 1});
  EXPECT_FALSE(BuildClosingProgram(devices, 3).ok());
}

TEST(DeviceProgram, RefusesGuardedDevicesButTheAdmitted) {
  const auto program =
      BuildDeviceProgram({.guarded = {{195, 0, 254}, {235, 0, 0xffffffff}, {4095, 0, 0xffffffff}},
                          .admitted = {{195, 2, 3}, {235, 7, 7}, {4095, 0xfffff, 0xfffff}}});
  ASSERT_TRUE(program.ok());
  for (const std::uint32_t access :
       {kReadChar, kWriteChar, kReadChar | kWriteChar, kReadChar | kMakeChar}) {
    EXPECT_EQ(Decide(*program, access, 195, 1), 0);
    EXPECT_EQ(Decide(*program, access, 195, 2), 1);
    EXPECT_EQ(Decide(*program, access, 195, 3), 1);
    EXPECT_EQ(Decide(*program, access, 195, 4), 0);
    EXPECT_EQ(Decide(*program, access, 195, 254), 0);
    EXPECT_EQ(Decide(*program, access, 195, 255), 1);
    EXPECT_EQ(Decide(*program, access, 235, 7), 1);
    EXPECT_EQ(Decide(*program, access, 235, 0xfffff), 0);
    EXPECT_EQ(Decide(*program, access, 236, 0), 1);
    EXPECT_EQ(Decide(*program, access, 4095, 0), 0);
    EXPECT_EQ(Decide(*program, access, 4095, 0xfffff), 1);
    EXPECT_EQ(Decide(*program, access, 0, 0), 1);
    EXPECT_EQ(Decide(*program, access, 1, 3), 1);
  }
}

TEST(DeviceProgram, LetsDeviceFilesBeMadeAndBlockDevicesAlone) {
  const auto program = BuildDeviceProgram({.guarded = {{195, 0, 255}}, .admitted = {}});
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(Decide(*program, kMakeChar, 195, 0), 1);
  EXPECT_EQ(Decide(*program, kReadBlock, 195, 0), 1);
  EXPECT_EQ(Decide(*program, kReadChar, 195, 0), 0);
}

TEST(DeviceProgram, GuardsUpToTheLastDeviceThereCanBe) {
  const auto program = BuildDeviceProgram({.guarded = {{4095, 1, 0xffffffff}}, .admitted = {}});
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(Decide(*program, kReadChar, 4095, 0xfffff), 0);
  EXPECT_EQ(Decide(*program, kReadChar, 4095, 1), 0);
  EXPECT_EQ(Decide(*program, kReadChar, 4095, 0), 1);
}

TEST(DeviceProgram, AllowsEverythingWithoutRules) {
  const auto program = BuildDeviceProgram({});
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(Decide(*program, kWriteChar, 195, 0), 1);
}

TEST(DeviceProgram, HoldsManyRangesButNotAnyNumber) {
  DeviceRules rules;
  for (std::uint32_t i = 0; i < kMaxDeviceRanges / 2; ++i) {
    rules.guarded.push_back({500, 4 * i, 4 * i + 1});
    rules.admitted.push_back({500, 4 * i, 4 * i});
  }
  const auto program = BuildDeviceProgram(rules);
  ASSERT_TRUE(program.ok());
  EXPECT_LE(program->size(), 4096u);  // BPF_MAXINSNS
  for (std::uint32_t i = 0; i < kMaxDeviceRanges / 2; ++i) {
    ASSERT_EQ(Decide(*program, kReadChar, 500, 4 * i), 1);
    ASSERT_EQ(Decide(*program, kReadChar, 500, 4 * i + 1), 0);
    ASSERT_EQ(Decide(*program, kReadChar, 500, 4 * i + 2), 1);
  }
  rules.admitted.push_back({1, 1, 1});
  EXPECT_EQ(BuildDeviceProgram(rules).error().code(), base::Code::kInvalidArgument);
}

TEST(DeviceProgram, RefusesRangesThatAreNone) {
  EXPECT_FALSE(BuildDeviceProgram({.guarded = {{195, 2, 1}}, .admitted = {}}).ok());
  EXPECT_FALSE(BuildDeviceProgram({.guarded = {{4096, 0, 1}}, .admitted = {}}).ok());
  EXPECT_FALSE(BuildDeviceProgram({.guarded = {}, .admitted = {{195, 0x100000, 0x100001}}}).ok());
}

}  // namespace
}  // namespace penstock::os
