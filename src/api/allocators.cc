#include "api/allocators.h"

#include <algorithm>
#include <array>

#include "api/config/node_config.h"

namespace penstock::api {
namespace {

constexpr std::array<Allocator, 2> kAllocators{{{.name = kKubeletAllocator,
                                                 .in_words = "the kubelet",
                                                 .holder = "pod",
                                                 .serves = "pods",
                                                 .condition = "KubeletDoor",
                                                 .enabled = &NodeConfig::kubelet_allocator,
                                                 .needs_kubelet = true,
                                                 .held_by = HeldBy::kPod,
                                                 .advertises = true,
                                                 .counts_itself = true},
                                                {.name = kLocalAllocator,
                                                 .in_words = "local users",
                                                 .holder = "run",
                                                 .serves = "penstock run",
                                                 .enabled = &NodeConfig::local_allocator,
                                                 .held_by = HeldBy::kProcesses,
                                                 .cuts_devices = true}}};

constexpr Allocator kNone{.in_words = "no allocator", .holder = "run"};

}  // namespace

std::span<const Allocator> Allocators() { return kAllocators; }

const Allocator& FindAllocator(std::string_view name) {
  const auto row = std::ranges::find(kAllocators, name, &Allocator::name);
  return row == kAllocators.end() ? kNone : *row;
}

const Allocator& CuttingAllocator() {
  return *std::ranges::find(kAllocators, true, &Allocator::cuts_devices);
}

std::string EnabledKey(const Allocator& allocator) {
  return "allocators." + std::string(allocator.name) + ".enabled";
}

std::vector<std::string> AllocatorWords(std::initializer_list<std::string_view> more) {
  std::vector<std::string> words;
  for (const Allocator& one : kAllocators) words.emplace_back(one.name);
  words.emplace_back(kNoAllocator);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string ToWord(const std::string& allocator) {
  return allocator.empty() ? std::string(kNoAllocator) : allocator;
}

std::string FromWord(const std::string& word) { return word == kNoAllocator ? "" : word; }

}  // namespace penstock::api
