// Asks a vendor's driver once, without an agent, for verbs that need the list of devices.
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
  std::vector<std::string> problems;  ///< devices that do not respond, each with the reason; a
                                      ///< device that hangs does not hide the others
};

/// Opens the driver and describes each device, followed by its parts. Runs, and calls `done`, on
/// the executor of `backend`, which must outlive `done`. A device that hangs loses the connection;
/// another one is opened for the remaining devices. A part that does not respond is missing, though
/// its device names it in Facts::parts. Errors: those of Open and List.
void ProbeOnce(device::AsyncBackend& backend, std::function<void(base::Result<Seen>)> done);

/// Like ProbeOnce, through a worker process of its own, on the calling thread. kNotFound: no
/// driver; kDeadlineExceeded: the driver did not respond in time.
base::Result<Seen> QueryDriver(const device::Dialect& dialect, const device::Paths& paths,
                               base::Duration patience);

}  // namespace penstock::app
