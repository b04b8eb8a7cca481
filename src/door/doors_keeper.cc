// One write at a time.
#include "door/doors_keeper.h"

#include <utility>

#include "base/log.h"
#include "os/core/file.h"
#include "os/kept_file.h"

namespace penstock::door {

struct DoorsKeeper::State : std::enable_shared_from_this<State> {
  State(base::Executor& c, base::Executor& i, std::string p) : control(c), io(i), path(std::move(p)) {}

  void Write() {
    if (writing || ended) return;
    writing = true;
    dirty = false;
    io.Post([self = shared_from_this(), text = EncodeDoors(devices)] {
      const base::Status written = os::WriteFileAtomically(self->path, text, 0600);
      self->control.Post([self, written] { self->Written(written); });
    });
  }

  void Written(const base::Status& written) {
    writing = false;
    if (!written.ok()) {
      base::Log(base::kError, "what was moved between doors by hand cannot be written, and would be forgotten by a restart",
                {{"path", path}, {"why", written.error().message()}});
      control.PostAfter(std::chrono::seconds(10), [self = shared_from_this()] { self->Write(); });
      return;
    }
    if (dirty) Write();
  }

  base::Executor& control;
  base::Executor& io;
  const std::string path;
  DevicesByHand devices;
  bool writing = false, dirty = false, ended = false;
};

DoorsKeeper::DoorsKeeper(base::Executor& control, base::Executor& io, std::string path)
    : state_(std::make_shared<State>(control, io, std::move(path))) {}

DoorsKeeper::~DoorsKeeper() { state_->ended = true; }

void DoorsKeeper::Keep(const DevicesByHand& devices) {
  state_->devices = devices;
  state_->dirty = true;
  state_->Write();
}

base::Result<DevicesByHand> DoorsKeeper::Load(const std::string& path) {
  return os::LoadKept<DevicesByHand>(path, "what was moved between doors by hand",
                                     [&](const std::string& text) { return DecodeDoors(text, path); });
}

}  // namespace penstock::door
