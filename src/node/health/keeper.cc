// Coalesced, atomic writes.
#include "node/health/keeper.h"

#include "base/log.h"
#include "os/core/file.h"
#include "os/kept_file.h"

namespace penstock::node::health {

namespace {

constexpr base::Duration kRest = std::chrono::seconds(1), kRetry = std::chrono::seconds(10);

}  // namespace

struct Keeper::State : std::enable_shared_from_this<State> {
  State(base::Executor& c, base::Executor& i, Monitor& m, std::string p, std::string b)
      : control(c), io(i), monitor(m), path(std::move(p)), boot_id(std::move(b)) {}

  void Changed() {
    dirty = true;
    if (writing || ended) return;
    writing = true;
    control.Post([self = shared_from_this()] { self->Write(); });
  }

  void Write() {
    if (ended) return;
    dirty = false;
    std::string text = EncodeMemory(monitor.Remember(), boot_id, control.clock().Wall());
    if (text == written) return Rest();
    io.Post([self = shared_from_this(), text = std::move(text)]() mutable {
      const base::Status done = os::WriteFileAtomically(self->path, text, 0600);
      self->control.Post([self, done, text = std::move(text)]() mutable { self->Written(done, std::move(text)); });
    });
  }

  void WriteNow() {
    const std::string text = EncodeMemory(monitor.Remember(), boot_id, control.clock().Wall());
    if (text != written) (void)os::WriteFileAtomically(path, text, 0600);
  }

  void Written(const base::Status& done, std::string text) {
    if (done.ok()) {
      written = std::move(text);
      return Rest();
    }
    base::Log(base::kError, "what is known of devices' health cannot be written; a restart will not know of it",
              {{"path", path}, {"why", done.error().message()}});
    control.PostAfter(kRetry, [self = shared_from_this()] { self->Write(); });
  }

  void Rest() {
    control.PostAfter(kRest, [self = shared_from_this()] {
      self->writing = false;
      if (self->dirty) self->Changed();
    });
  }

  base::Executor& control;
  base::Executor& io;
  Monitor& monitor;
  const std::string path, boot_id;
  std::string written;
  bool dirty = false, writing = false, ended = false;
};

Keeper::Keeper(base::Executor& control, base::Executor& io, Monitor& monitor, std::string path, std::string boot_id)
    : state_(std::make_shared<State>(control, io, monitor, std::move(path), std::move(boot_id))) {
  monitor.OnChange([state = state_.get()] { state->Changed(); });
  state_->Changed();  // who sits where now
}

Keeper::~Keeper() {
  state_->ended = true;
  state_->monitor.OnChange(nullptr);
  // What has not been written, or may be waiting for an executor that does not run any more.
  if (state_->writing || state_->dirty) state_->WriteNow();
}

base::Result<Memory> Keeper::Load(const std::string& path, const std::string& boot_id, base::WallTime now) {
  return os::LoadKept<Memory>(path, "what was known of devices' health",
                              [&](const std::string& text) { return DecodeMemory(text, boot_id, path, now); });
}

}  // namespace penstock::node::health
