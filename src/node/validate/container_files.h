// What a program in a container with CDI devices must be able to open, and why it cannot. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/cdi/spec.h"
#include "base/core/result.h"

namespace penstock::node::validate {

/// The files that specifications promise to a container, by their paths in it.
struct PromisedFiles {
  std::map<std::string, bool> files;  ///< whether each is a device file

  std::vector<std::string> paths() const;
  std::size_t devices() const;
};

PromisedFiles PromiseOf(const api::cdi::CdiEdits& edits);

/// What became of the files that were promised.
struct OpenedFiles {
  std::vector<std::string> why_not;  ///< one clause for each that cannot be opened, the device
                                     ///< files first; empty: all can
  std::vector<std::string>
      unserved;  ///< device files that may be opened, and that no driver serves
};

/// `output` is penstock-probe's: a line "ERRNO FILE" for each file. kUnavailable where one has no
/// line; a line of another file is passed over. A device in exclusive use (EBUSY) is open. ENXIO is
/// the kernel's answer for a device file whose number no driver has (chrdev_open, fs/char_dev.c):
/// it was injected and access is allowed, but not opened; whether the driver is loaded is another
/// step's matter. ENODEV is a driver's answer where it has no device of that number (NVIDIA's
/// nvidia_open, drm_minor_acquire), or where a module that would serve it is not loaded
/// (nvidia_frontend_open, of /dev/nvidia-modeset): it counts likewise.
base::Result<OpenedFiles> WhatOpened(const PromisedFiles& promised, std::string_view output);

}  // namespace penstock::node::validate
