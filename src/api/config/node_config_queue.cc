// Reads and prints the section `queue`: limits of the queue for devices.
#include "api/config/node_config_sections.h"

namespace penstock::api::internal {
namespace {

using base::MapReader;

constexpr int kMaxPerUser = 1 << 20;
constexpr base::Duration kLongest = std::chrono::hours(24 * 3650);

}  // namespace

void ReadQueue(MapReader& top, base::Problems& problems, QueueConfig& queue) {
  MapReader reader(MapAt(top, "queue"), "queue", problems);
  MapReader user(MapAt(reader, "perUser"), "queue.perUser", problems);
  queue.gpus = static_cast<int>(user.Int("gpus", 0, kMaxPerUser).value_or(queue.gpus));
  queue.waiting = static_cast<int>(user.Int("waiting", 0, kMaxPerUser).value_or(queue.waiting));
  queue.time = user.Time("time", base::Duration::zero(), kLongest).value_or(queue.time);
  user.Finish();
  reader.Finish();
}

std::string QueueText(const QueueConfig& queue) {
  return "queue:\n  perUser:\n    gpus: " + std::to_string(queue.gpus) +
         "\n    waiting: " + std::to_string(queue.waiting) + "\n    time: " + Text(queue.time) +
         "\n";
}

}  // namespace penstock::api::internal
