// What is said of the file.
#include "door/doors_keeper.h"

#include <utility>

namespace penstock::door {

DoorsKeeper::DoorsKeeper(base::Executor& control, base::Executor& io, std::string path)
    : file_(control, io, std::move(path), "what was moved between doors by hand cannot be written, and would be forgotten by a restart") {}

base::Result<DevicesByHand> DoorsKeeper::Load(const std::string& path) {
  return os::LoadKept<DevicesByHand>(path, "what was moved between doors by hand",
                                     [&](const std::string& text) { return DecodeDoors(text, path); });
}

}  // namespace penstock::door
