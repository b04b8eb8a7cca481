// Who allocates devices: a row for each allocator. Pure.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::api {

enum class Switch;
struct NodeConfig;

/// What holds a device, and so how its processes are recognized.
enum class HeldBy {
  kUnknown,
  kPod,        ///< the processes in the control groups of a pod
  kProcesses,  ///< those in a control group of their own, or started by one that was recorded
};

/// What follows from who allocates a device. Only the code of an allocator itself knows it by its
/// name; other code asks a column (tests/architecture/allocators_test.py).
struct Allocator {
  std::string_view name;       ///< "kubelet", in the configuration, reports and checkpoints
  std::string_view in_words;   ///< "local users", in sentences
  std::string_view holder;     ///< what its holders are: "pod", "run"
  std::string_view serves;     ///< who asks it for devices: "pods", "penstock run"
  std::string_view condition;  ///< the condition that says whether it is open; empty: none
  Switch NodeConfig::*enabled = nullptr;  ///< its switch in the configuration (EnabledKey)
  bool needs_kubelet = false;             ///< it is not enabled by itself where there is no kubelet
  HeldBy held_by = HeldBy::kUnknown;
  bool advertises = false;     ///< what it offers are resources of the Node, which pods request
  bool counts_itself = false;  ///< it has a list of its own of what it may allocate, and must have
                               ///< taken note before a device is withdrawn from it; what it has
                               ///< allocated, and to which holder, is known from its reports
  bool cuts_devices = false;   ///< it divides whole devices for requests

  constexpr bool is_for_pods() const { return held_by == HeldBy::kPod; }
};

inline constexpr std::string_view kKubeletAllocator = "kubelet";
inline constexpr std::string_view kLocalAllocator = "local";
inline constexpr std::string_view kNoAllocator = "none";  ///< where users assign a device to none
inline constexpr std::string_view kConfiguredAllocator = "default";  ///< as the configuration says

/// In the order in which devices go to them that no rule assigns.
std::span<const Allocator> Allocators();

/// The row of this name; of one without a name, whose columns are false, for any other.
const Allocator& FindAllocator(std::string_view name);

/// The one that divides devices for requests: parts on demand are its.
const Allocator& CuttingAllocator();

/// The key of its switch: "allocators.kubelet.enabled".
std::string EnabledKey(const Allocator& allocator);

/// What a device can be assigned to: the names of the allocators, "none", and `more`.
std::vector<std::string> AllocatorWords(std::initializer_list<std::string_view> more = {});

/// "none" for "", and back; any other name is its own word.
std::string ToWord(const std::string& allocator);
std::string FromWord(const std::string& word);

}  // namespace penstock::api
