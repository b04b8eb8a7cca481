// What a vendor's driver tells, asked once and without an agent, for verbs that need to know which devices there are.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "device/backend.h"
#include "device/dialect.h"
#include "device/model.h"

namespace penstock::app {

struct Seen {
  device::Driver driver;
  std::vector<device::Facts> devices;
  std::vector<std::string> problems;  ///< devices that do not answer, each with why: one that hangs must not hide the others
};

/// Opens the driver, and describes each device: on the executor of `backend`, which must outlive `done`, as `done` itself runs. A device
/// that hangs costs the connection, and another one is opened for the rest. Errors are Open's and List's.
void LookOnce(device::AsyncBackend& backend, std::function<void(base::Result<Seen>)> done);

/// The same through a worker process of its own, on the calling thread. kNotFound: no driver; kDeadlineExceeded: it did not answer in time.
base::Result<Seen> AskDriver(const device::Dialect& dialect, const device::Paths& paths, base::Duration patience);

}  // namespace penstock::app
