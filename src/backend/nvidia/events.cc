#include "backend/nvidia/events.h"

#include <array>

#include "backend/nvidia/dialect/kinds.h"
#include "backend/nvidia/dialect/mig_profile.h"
#include "backend/nvidia/facts.h"
#include "device/kinds.h"

namespace penstock::backend::nvidia {
namespace {

using device::Evidence;

constexpr int kMaxAtOnce = 64;

struct Kind {
  unsigned long long type;
  std::string_view kind;
  std::int64_t code;
  std::string_view text;
};

// All events but XIDs carry no data (nvml.h): their type is their meaning.
constexpr std::array kKinds{
    Kind{abi::kEventDoubleBitEcc, kEccUncorrectable, 1, "an uncorrectable ECC error"},
    Kind{abi::kEventDramRetirement, kRemapPending, 1, "a memory row was marked for remapping"},
    Kind{abi::kEventDramRetirementFailure, kRemapFailure, 1, "a memory row could not be remapped"},
    Kind{abi::kEventNonFatalPoison, kPoison, 0, "poisoned data, contained"},
    Kind{abi::kEventFatalPoison, kPoison, 1, "poisoned data, not contained"},
    Kind{abi::kEventGpuUnavailable, kUnavailable, 0, "the GPU is unavailable"},
    Kind{abi::kEventRecoveryAction, kRecoveryChanged, 0, "the recovery action changed"},
    Kind{abi::kEventMigConfig, device::kFactsChanged, 0, "MIG instances or the MIG mode changed"},
};

constexpr unsigned long long Wanted() {
  unsigned long long types = abi::kEventXid;
  for (const Kind& kind : kKinds) types |= kind.type;
  return types;
}

}  // namespace

Events::Events(const Nvml& nvml) : nvml_(nvml) {
  if (nvml_->event_set_create(&set_) != abi::kSuccess) set_ = nullptr;
}

Events::~Events() {
  if (set_ != nullptr) nvml_->event_set_free(set_);
}

void Events::Expect(std::size_t devices) {
  std::lock_guard lock(mutex_);
  expected_ = devices;
}

void Events::Register(abi::Device device, const std::string& id) {
  {
    std::lock_guard lock(mutex_);
    const auto [known, fresh] = ids_.insert_or_assign(device, id);
    if (!fresh) return;
  }
  // One type that a device does not support would fail the whole call.
  unsigned long long supported = 0;
  const bool readable =
      set_ != nullptr && nvml_->supported_events(device, &supported) == abi::kSuccess;
  const unsigned long long types = supported & Wanted();
  const bool registered =
      readable && types != 0 && nvml_->register_events(device, types, set_) == abi::kSuccess;
  std::lock_guard lock(mutex_);
  if (registered) ++registered_;
  changed_.notify_all();
}

bool Events::AnyRegistered(std::chrono::milliseconds most, bool& hopeless) {
  std::unique_lock lock(mutex_);
  const auto hopeless_now = [&] {
    return set_ == nullptr || !nvml_->event_wait || (expected_ > 0 && ids_.size() >= expected_);
  };
  changed_.wait_for(lock, most, [&] { return registered_ > 0 || hopeless_now(); });
  hopeless = hopeless_now();
  return registered_ > 0;
}

Evidence Events::Translate(const abi::EventData& event) {
  Evidence evidence;
  evidence.source = device::EvidenceSource::kEvent;
  {
    std::lock_guard lock(mutex_);
    if (const auto id = ids_.find(event.device); id != ids_.end()) evidence.device = id->second;
  }
  evidence.kind = kXid;
  evidence.code = static_cast<std::int64_t>(event.data);
  // nvmlEventData_t: only XIDs are attributed to instances.
  if (event.type == abi::kEventXid && event.gpu_instance != abi::kNoInstance)
    evidence.part =
        PartName(event.gpu_instance, event.compute_instance == abi::kNoInstance
                                         ? std::nullopt
                                         : std::optional<std::uint64_t>(event.compute_instance));
  for (const Kind& kind : kKinds) {
    if (event.type != kind.type) continue;
    evidence.kind = kind.kind;
    evidence.code = kind.code;
    evidence.text = kind.text;
  }
  return evidence;
}

base::Result<std::vector<Evidence>> Events::Wait(std::chrono::milliseconds most) {
  bool hopeless = false;
  if (!AnyRegistered(most, hopeless)) {
    if (hopeless)
      return base::Error(Code::kUnimplemented, "no GPU on this machine supports events");
    return std::vector<Evidence>{};
  }
  std::vector<Evidence> evidence;
  for (int i = 0; i < kMaxAtOnce; ++i) {
    // A library with only the first version of the call leaves the instances as they are.
    abi::EventData event{.gpu_instance = abi::kNoInstance, .compute_instance = abi::kNoInstance};
    const auto timeout = static_cast<unsigned>(evidence.empty() ? most.count() : 0);
    const abi::Return answer = nvml_->event_wait(set_, &event, timeout);
    if (answer == abi::kTimeout) break;
    if (answer != abi::kSuccess) {
      // One lost GPU may fail the wait for all; the error says nothing about the others.
      if (!evidence.empty()) break;
      return base::Error(Code::kUnavailable, ToError(answer, nvml_->event_wait.name).message());
    }
    evidence.push_back(Translate(event));
  }
  return evidence;
}

}  // namespace penstock::backend::nvidia
