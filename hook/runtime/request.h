// Which devices and which parts of NVIDIA's driver a container asks for: by annotation, by mounts, by environment. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/core/result.h"
#include "hook/runtime/config.h"
#include "hook/runtime/facts.h"

namespace penstock::hook::runtime {

/// More names than any machine has devices: a longer list is refused, so that nobody keeps the engine busy with it.
inline constexpr std::size_t kMostNames = 4096;

/// Something to say about a request that was not followed to the letter.
struct Remark {
  LogLevel level = LogLevel::kInfo;
  std::string text;
  bool operator==(const Remark&) const = default;
};

struct Request {
  std::vector<std::string> devices;  ///< qualified CDI names, each once: the container does not start without them
  std::vector<std::string> wishes;   ///< likewise; where they are not there, the log says so
  bool driver = false;               ///< "none": the driver's files without any device
  bool by_annotation = false;        ///< as engines with CDI of their own are asked
  std::vector<Remark> remarks;

  /// Whether there is nothing to do: the container runs as without us.
  bool Empty() const { return devices.empty() && wishes.empty() && !driver; }
};

/// By precedence: CDI annotations, the list of mounts, the environment (NVIDIA container toolkit, internal/config/image/cuda_image.go).
/// Every name is checked before anybody uses it. kInvalidArgument names the variable, annotation or mount and what is wrong with it;
/// kResourceExhausted where too much is asked for; kPermissionDenied for what only privileged containers may have.
base::Result<Request> ReadRequest(const Facts& facts, const Config& config);

/// A text from outside as it may stand in a message: in quotes, no control characters, not longer than people read.
std::string Shown(std::string_view text);

}  // namespace penstock::hook::runtime
