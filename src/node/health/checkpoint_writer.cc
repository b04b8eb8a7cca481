#include "node/health/checkpoint_writer.h"

#include <array>

#include "base/log.h"
#include "os/core/file.h"
#include "os/kept_file.h"

namespace penstock::node::health {

namespace {

constexpr base::Duration kRest = std::chrono::seconds(1), kRetry = std::chrono::seconds(10);

std::string MarksPath(const std::string& folder) { return folder + "/health-marks.json"; }
std::string MemoryPath(const std::string& folder) { return folder + "/health.json"; }

using Texts = std::array<std::string, 2>;

/// Writes the files whose text changed.
base::Status WriteAll(const std::array<std::string, 2>& paths, const Texts& texts,
                      const Texts& written) {
  for (std::size_t i = 0; i < paths.size(); ++i)
    if (texts[i] != written[i]) TRY(os::WriteFileAtomically(paths[i], texts[i], 0600));
  return {};
}

}  // namespace

struct HealthCheckpointWriter::State : std::enable_shared_from_this<State> {
  State(base::Executor& c, base::Executor& i, Monitor& m, const std::string& folder, std::string b)
      : control(c),
        io(i),
        monitor(m),
        paths{MemoryPath(folder), MarksPath(folder)},
        boot_id(std::move(b)) {}

  Texts Encode() const {
    const HealthCheckpoint memory = monitor.Remember();
    return {EncodeHealthCheckpoint(memory, boot_id, control.clock().Wall()),
            EncodeMarks(memory, boot_id)};
  }

  void Changed() {
    dirty = true;
    if (writing || ended) return;
    writing = true;
    control.Post([self = shared_from_this()] { self->Write(); });
  }

  void Write() {
    if (ended) return;
    dirty = false;
    Texts texts = Encode();
    if (texts == written) return Rest();
    io.Post([self = shared_from_this(), texts = std::move(texts), before = written]() mutable {
      const base::Status done = WriteAll(self->paths, texts, before);
      self->control.Post([self, done, texts = std::move(texts)]() mutable {
        self->Written(done, std::move(texts));
      });
    });
  }

  void WriteNow() { (void)WriteAll(paths, Encode(), written); }

  void Written(const base::Status& done, Texts texts) {
    if (done.ok()) {
      written = std::move(texts);
      return Rest();
    }
    base::Log(base::kError,
              "cannot write the checkpoint of device health; it will be missing after a restart",
              {{"why", done.error().message()}});
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
  const std::array<std::string, 2> paths;  // of health.json and health-marks.json
  const std::string boot_id;
  Texts written;
  bool dirty = false, writing = false, ended = false;
};

HealthCheckpointWriter::HealthCheckpointWriter(base::Executor& control, base::Executor& io,
                                               Monitor& monitor, const std::string& folder,
                                               std::string boot_id)
    : state_(std::make_shared<State>(control, io, monitor, folder, std::move(boot_id))) {
  monitor.OnChange([state = state_.get()] { state->Changed(); });
  state_->Changed();  // the occupancy is new
}

HealthCheckpointWriter::~HealthCheckpointWriter() {
  state_->ended = true;
  state_->monitor.OnChange(nullptr);
  // Pending changes, or a write queued on an executor that no longer runs.
  if (state_->writing || state_->dirty) state_->WriteNow();
}

base::Result<HealthCheckpoint> HealthCheckpointWriter::Load(const std::string& folder,
                                                            const std::string& boot_id,
                                                            base::WallTime now) {
  const std::string path = MemoryPath(folder), marks_path = MarksPath(folder);
  ASSIGN(HealthCheckpoint memory,
         os::LoadKept<HealthCheckpoint>(path, "the checkpoint of device health",
                                        [&](const std::string& text) {
                                          return DecodeHealthCheckpoint(text, boot_id, path, now);
                                        }));
  ASSIGN(HealthMarks marks,
         os::LoadKept<HealthMarks>(
             marks_path, "the checkpoint of device reset marks",
             [&](const std::string& text) { return DecodeMarks(text, boot_id, marks_path); }));
  AddMarks(std::move(marks), memory);
  return memory;
}

}  // namespace penstock::node::health
