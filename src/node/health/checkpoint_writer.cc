#include "node/health/checkpoint_writer.h"

namespace penstock::node::health {

namespace {

constexpr base::Duration kRest = std::chrono::seconds(1);

std::string MarksPath(const std::string& folder) { return folder + "/health-marks.json"; }
std::string HealthPath(const std::string& folder) { return folder + "/health.json"; }

constexpr char kUnwritten[] =
    "cannot write the checkpoint of device health; it will be missing after a restart";

}  // namespace

HealthCheckpointWriter::HealthCheckpointWriter(base::Executor& control, base::Executor& io,
                                               Monitor& monitor, const std::string& folder,
                                               const std::string& boot_id)
    : monitor_(monitor),
      health_(control, io, HealthPath(folder), kUnwritten, kRest,
              [&control, &monitor, boot_id] {
                return [state = monitor.Remember(), boot_id, now = control.clock().Wall()] {
                  return EncodeHealthCheckpoint(state, boot_id, now);
                };
              }),
      marks_(control, io, MarksPath(folder), kUnwritten, kRest, [&monitor, boot_id] {
        return [state = monitor.Remember(), boot_id] { return EncodeMarks(state, boot_id); };
      }) {
  monitor.OnChange([this] { Changed(); });
  Changed();  // the occupancy is new
}

HealthCheckpointWriter::~HealthCheckpointWriter() { monitor_.OnChange(nullptr); }

void HealthCheckpointWriter::Changed() {
  health_.Changed();
  marks_.Changed();
}

base::Result<HealthCheckpoint> HealthCheckpointWriter::Load(const std::string& folder,
                                                            const std::string& boot_id,
                                                            base::WallTime now) {
  const std::string path = HealthPath(folder), marks_path = MarksPath(folder);
  ASSIGN(HealthCheckpoint state,
         os::LoadKept<HealthCheckpoint>(path, "the checkpoint of device health",
                                        [&](const std::string& text) {
                                          return DecodeHealthCheckpoint(text, boot_id, path, now);
                                        }));
  ASSIGN(HealthMarks marks,
         os::LoadKept<HealthMarks>(
             marks_path, "the checkpoint of device reset marks",
             [&](const std::string& text) { return DecodeMarks(text, boot_id, marks_path); }));
  AddMarks(std::move(marks), state);
  return state;
}

}  // namespace penstock::node::health
