// NVIDIA's MPS for sets of GPUs: a control daemon each, started, watched, started again, ended. Decides nothing about who may share what.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "device/sharing.h"
#include "os/loop.h"

namespace penstock::vendor::nvidia {

struct MpsOptions {
  std::string driver_root = "/";
  std::string root = "/run/nvidia/mps";       ///< where the sets have their folders, as this process sees it
  std::string host_root = "/run/nvidia/mps";  ///< the same folder as the machine calls it
  std::string proc_root = "/proc";
  /// Containers use the servers: each set has a /dev/shm of its own, which they get. Else the machine's own is used, and processes of the
  /// machine need nothing but an environment variable.
  bool own_shm = true;
  std::string launcher;  ///< penstock-worker, which makes that so (os/launch.h); empty: neither own /dev/shm nor own control group

  base::Duration answer_deadline = std::chrono::seconds(5);  ///< of one question
  base::Duration start_deadline = std::chrono::seconds(20);  ///< of a start, until the first answer
  base::Duration ask_every = std::chrono::seconds(10);       ///< while nothing happens
  base::Duration ask_often = std::chrono::seconds(1);        ///< while something is waited for
  base::Duration first_retry = std::chrono::seconds(1);      ///< doubled with each failure ...
  base::Duration last_retry = std::chrono::minutes(2);       ///< ... up to this
  base::Duration end_deadline = std::chrono::seconds(8);     ///< that EndIdle takes at most; it blocks, since the agent's loop ends
  base::Duration settle = std::chrono::seconds(10);          ///< so long servers are kept that were found running and nobody wants yet
};

/// On the control executor, where it lives and dies. Servers outlive it.
std::unique_ptr<device::SharingService> MakeMpsService(os::Loop& control, MpsOptions options);

}  // namespace penstock::vendor::nvidia
