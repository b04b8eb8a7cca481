// Encodes and decodes the broker's protocol: requests and answers as lines of JSON
// (docs/reference/broker-protocol.md). Does no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "base/core/quantity.h"
#include "base/core/result.h"

namespace penstock::protocol::broker {

inline constexpr int kProtocolVersion = 1;
inline constexpr std::size_t kMaxLineBytes = 64u << 10;  ///< of a request, including its newline
inline constexpr int kMaxDevices = 1024;                 ///< devices that one request may ask for
inline constexpr int kMaxShares =
    1024;  ///< shares into which one request may have a device divided
inline constexpr std::size_t kMaxLabels = 32;  ///< of one run

enum class Operation {
  kVersion,
  kRun,
  kQueue,
  kCancel,
  kStatus,
  kPs,
  kPreview,
  kDown,
  kAssign,
  kSamples,
  kUsage,
  kDivide,
  kRelease
};

/// "run": wait for devices, then enter a control group that may use only these.
struct RunRequest {
  int count = 1;
  int share = 1;            ///< 1: whole devices; N: one share each of devices divided into N
  base::Bytes memory;       ///< limit for each device that must be enforced; 0: none
  int compute_percent = 0;  ///< likewise
  std::string model;        ///< glob; empty: any
  std::string vendor = {};  ///< only its devices; empty: of any one vendor
  std::string profile;      ///< parts of this profile, such as "1g.5gb"
  base::Bytes min_memory;   ///< devices or parts with at least so much; 0 without a profile: whole
                            ///< devices
  std::vector<std::string> devices;    ///< ids or indices; if given, exactly these
  std::optional<base::Duration> wait;  ///< nothing: indefinitely; 0: not at all
  std::optional<base::Duration>
      time;             ///< the run is ended this long after it was granted; nothing: no limit
  std::string ticket;   ///< ticket of its place in the queue of an agent that has ended
  std::string command;  ///< shown to people
  std::map<std::string, std::string>
      labels;  ///< labels of its series and usage records; see CheckLabel
  bool operator==(const RunRequest&) const = default;
};

/// Checks whether a label is valid: a key as in Kubernetes (letters, digits, '-', '_', '.', '/', at
/// most 128 bytes, a letter or digit first and last) and a value of at most 256 bytes of printable
/// UTF-8. kInvalidArgument says what is wrong.
base::Status CheckLabel(const std::string& key, const std::string& value);

/// "plan": report what another configuration would change.
struct PreviewRequest {
  std::optional<std::string>
      text;  ///< a configuration; nothing: the current one, as it is on disk or in the cluster
  std::string name = "configuration";  ///< of the text, in errors
  bool explain = false;  ///< also report which devices requests would get now, and why
  bool operator==(const PreviewRequest&) const = default;
};

/// Operation::kAssign: assign devices to another allocator.
struct AssignRequest {
  std::vector<std::string> devices;  ///< ids or indices
  std::string allocator;             ///< of api::AllocatorWords, or "default"
  std::optional<base::Duration>
      wait;              ///< how long to wait for their holders; nothing: refuse held devices
  bool dry_run = false;  ///< only report what would be done
  bool operator==(const AssignRequest&) const = default;
};

/// "divide": divide devices as a layout says.
struct DivideRequest {
  std::string layout;       ///< api::EncodeLayout
  bool mode_only = false;   ///< only whether devices are divided counts, not into what
  bool skip_reset = false;  ///< do not divide devices that need a reset
  std::optional<base::Duration>
      wait;  ///< how long to wait for holders; nothing: where one is in the way, change nothing
  std::string vendor = {};  ///< whose devices; empty: those of the vendor that alone had layouts in
                            ///< the first releases
  bool operator==(const DivideRequest&) const = default;
};

/// "usage": report usage, or the holders of unused devices.
struct UsageRequest {
  bool idle = false;                    ///< report only the holders of unused devices
  std::vector<std::string> by;          ///< api::UsageKeys
  std::optional<base::WallTime> since;  ///< nothing: since the first record
  std::optional<base::WallTime> until;  ///< nothing: now
  bool operator==(const UsageRequest&) const = default;
};

/// Operation::kRelease: let go of a vendor's driver for as long as the connection lives.
struct ReleaseRequest {
  std::string vendor;
  bool operator==(const ReleaseRequest&) const = default;
};

struct Request {
  Operation operation = Operation::kVersion;
  RunRequest run;          ///< of kRun
  std::string ticket;      ///< of kCancel
  PreviewRequest preview;  ///< of kPreview
  AssignRequest assign;    ///< of kAssign
  UsageRequest usage;      ///< of kUsage
  DivideRequest divide;    ///< of kDivide
  ReleaseRequest release;  ///< of kRelease
  bool operator==(const Request&) const = default;
};

/// Parses one line. kInvalidArgument lists everything that is wrong with it, kUnimplemented names
/// the operations that exist.
base::Result<Request> DecodeRequest(std::string_view line);
std::string EncodeRequest(const Request& request);

/// A run in the queue.
struct WaitingRun {
  std::string ticket;
  int position = 0;  ///< from 0
  std::string reason;
  std::string user, command;
  int count = 1;
  int share = 1;
  std::string model;
  std::vector<std::string> devices;
  std::string since;                        ///< RFC 3339
  std::optional<base::Duration> time = {};  ///< RunRequest::time
  std::string expected_start;               ///< RFC 3339; empty: unknown
  bool resumable = false;    ///< the place is kept when the agent ends, for a client that names the
                             ///< ticket soon after
  std::string profile = {};  ///< RunRequest::profile
  base::Bytes min_memory = {};  ///< RunRequest::min_memory
  std::string vendor = {};      ///< RunRequest::vendor
  bool operator==(const WaitingRun&) const = default;
};

struct GrantedDevice {
  std::string id;
  int index = -1;
  std::string model;
  std::string slot;       ///< "GPU-5a…::3"; the device's own id if it is whole
  int shares = 1;         ///< into which the device is divided
  std::string sharing;    ///< "none", "time-slicing", "mps"
  std::string isolation;  ///< from the holders of other shares: "none", "memory-per-process", ...,
                          ///< "hardware"
  base::Bytes memory_limit;     ///< 0: none
  int compute_percent = 0;      ///< likewise
  std::string memory_limit_by;  ///< what enforces it: "server"; empty: no limit
  std::string compute_by;       ///< likewise
  std::string number = {};      ///< of a part: "0:1"
  std::string profile = {};     ///< of a part: "1g.5gb"
  bool operator==(const GrantedDevice&) const = default;
};

/// What the caller was granted; the caller is already in its control group.
struct GrantedRun {
  std::string lease;
  std::vector<GrantedDevice> devices;
  std::map<std::string, std::string> environment;
  std::string enforcement;                  ///< "devices", "visibility"
  std::string reason;                       ///< why it is only "visibility"
  std::optional<base::Duration> time = {};  ///< RunRequest::time
  std::optional<base::Duration> time_while_others_wait =
      {};  ///< after this time, the run may be ended while another user waits for its devices
  bool operator==(const GrantedRun&) const = default;
};

/// The progress of a device's move from one allocator to another.
struct AssignProgress {
  std::string device;  ///< id
  int index = -1;
  std::string from, to;  ///< of api::AllocatorWords
  /// "unchanged": the device belongs to the allocator already; "would-move": result of a dry run;
  /// "waiting": withdrawn, waits for what `reason` says; "acknowledged": no allocator has the
  /// device any more, which ends a move to "none"; "offered": ends any other move.
  std::string state;
  std::string reason;       ///< what the move waits for; in a dry run: the present holders
  std::string number = {};  ///< of a part: "0:1"
  bool operator==(const AssignProgress&) const = default;
};

/// How a device stands while it is divided.
struct DivideProgress {
  std::string device;  ///< id
  std::string number;  ///< by which users know it
  std::string state;   ///< node::change::DeviceDivision::state
  std::string reason;
  bool operator==(const DivideProgress&) const = default;
};

/// The agent has let go of a driver.
struct ReleasedDriver {
  std::string vendor;
  std::vector<std::string> remaining;  ///< what of the agent still has device files open, and why
  bool operator==(const ReleasedDriver&) const = default;
};

/// Identifies the agent that answers.
struct VersionAnswer {
  std::string version;
  int protocol = kProtocolVersion;
  std::int64_t pid = 0;
};

std::string EncodeError(const base::Error& error);
std::string EncodeWaiting(
    const WaitingRun& waiting);  ///< {"waiting": {...}}, any number of times before the last answer
std::string EncodeGranted(const GrantedRun& granted);           ///< {"granted": {...}}
std::string EncodeQueue(const std::vector<WaitingRun>& queue);  ///< {"queue": [...]}
std::string EncodeMoving(
    const AssignProgress& move);  ///< {"moving": {...}}, any number of times before the last answer
std::string EncodeMoved(const std::vector<AssignProgress>& moves);  ///< {"moved": [...]}
std::string EncodeDividing(const DivideProgress& device);  ///< {"dividing": {...}}, any number of
                                                           ///< times before the last answer
std::string EncodeDivided(const std::vector<DivideProgress>& devices);  ///< {"divided": [...]}
std::string EncodeReleased(
    const ReleasedDriver& driver);  ///< {"released": {...}}; no other line follows
std::string EncodeVersion(const VersionAnswer& version);  ///< {"version", "protocol", "pid"}
std::string EncodeDone(std::string_view what);            ///< {"done": "..."}

/// One answer to "run".
struct RunAnswer {
  std::optional<WaitingRun> waiting;
  std::optional<GrantedRun> granted;
};

/// One answer to Operation::kAssign.
struct AssignAnswer {
  std::optional<AssignProgress> moving;
  std::optional<std::vector<AssignProgress>> moved;
};

/// One answer to "divide".
struct DivideAnswer {
  std::optional<DivideProgress> dividing;
  std::optional<std::vector<DivideProgress>> divided;
};

/// Each returns the error of an {"error": ...} answer, and kDataLoss for a line that is no such
/// answer. Keys that a newer agent adds are ignored.
base::Result<RunAnswer> DecodeRunAnswer(std::string_view line);
base::Result<AssignAnswer> DecodeAssignAnswer(std::string_view line);
base::Result<DivideAnswer> DecodeDivideAnswer(std::string_view line);
base::Result<ReleasedDriver> DecodeReleased(std::string_view line);
base::Result<std::vector<WaitingRun>> DecodeQueue(std::string_view line);
/// For answers whose content is defined elsewhere: returns the error if it is one, else the line
/// itself.
base::Result<std::string> DecodeAny(std::string_view line);

}  // namespace penstock::protocol::broker
