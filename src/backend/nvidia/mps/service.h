// Runs NVIDIA's MPS for sets of GPUs and for single MIG devices: starts, watches, restarts and ends
// one control daemon per set. The caller decides what is shared.
//
// MIG devices (MIG user guide, "MIG with CUDA MPS"): each has a daemon with folders of its own
// and its UUID in CUDA_VISIBLE_DEVICES; so it is device 0 of its daemon (NVIDIA/k8s-device-plugin
// #572), and percentages and memory limits are of its processors and memory.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "device/sharing.h"
#include "os/loop.h"
#include "os/process/process.h"

namespace penstock::backend::nvidia {

struct MpsOptions {
  std::string driver_root = "/";
  std::string root = "/run/nvidia/mps";  ///< folder of the sets' folders, as this process sees it
  std::string host_root = "/run/nvidia/mps";  ///< the same folder as the host sees it
  std::string proc_root = "/proc";
  /// True: containers use the servers, and each set has its own /dev/shm, which its containers get.
  /// False: the machine's /dev/shm is used, and processes of the machine need only an environment
  /// variable.
  bool own_shm = true;
  std::string launcher;  ///< penstock-worker, which sets up the own /dev/shm and control group
                         ///< (os/process/launch.h); empty: neither of them

  base::Duration answer_deadline = std::chrono::seconds(5);  ///< of one question
  base::Duration start_deadline = std::chrono::seconds(20);  ///< of a start, until the first answer
  base::Duration poll_every = std::chrono::seconds(10);      ///< in the normal state
  base::Duration poll_often = std::chrono::seconds(1);       ///< while waiting for a change
  base::Duration first_retry = std::chrono::seconds(1);      ///< doubled with each failure ...
  base::Duration last_retry = std::chrono::minutes(2);       ///< ... up to this
  base::Duration end_deadline =
      std::chrono::seconds(8);  ///< most that EndIdle takes; it blocks, since the agent's loop ends
  base::Duration settle = std::chrono::seconds(
      10);  ///< how long servers found running are kept before a set needs them
};

/// Creates the service. It lives on the control executor; its servers outlive it.
std::unique_ptr<device::SharingService> MakeMpsService(os::Loop& control, MpsOptions options);

/// The functions of the vendor's row (backend/vendors.inc).
std::unique_ptr<device::SharingService> MakeSharingService(os::Loop& control,
                                                           const device::ServerOptions& options);
bool IsServer(const std::string& proc_root, const os::ProcessInfo& process);

}  // namespace penstock::backend::nvidia
