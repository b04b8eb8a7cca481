// The broker's protocol: requests and answers as lines of JSON (docs/reference/broker-protocol.md). No sockets, no decisions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::edge::broker {

inline constexpr int kProtocolVersion = 1;
inline constexpr std::size_t kMostLineBytes = 64u << 10;  ///< of a request, its newline included
inline constexpr int kMostDevices = 1024;                 ///< that one request can ask for
inline constexpr int kMostShares = 1024;                  ///< that one request can have a device cut into
inline constexpr std::size_t kMostLabels = 32;            ///< of one run

enum class Operation { kVersion, kRun, kQueue, kCancel, kStatus, kPs, kPlan, kDown, kDoor, kSamples, kUsage };

/// "run": wait for devices, then enter a group that may use just these.
struct RunRequest {
  int count = 1;
  int share = 1;                              ///< 1: whole devices; N: one share each of devices cut N ways
  std::string model;                          ///< glob; empty: any
  std::vector<std::string> devices;           ///< ids or indices; given: exactly these
  std::optional<base::Duration> wait;         ///< nothing: for ever; 0: now or never
  std::optional<base::Duration> time;         ///< it is ended so long after it was served; nothing: it is not
  std::string ticket;                         ///< of the place in line that it had when an agent before this one ended
  std::string command;                        ///< for people
  std::map<std::string, std::string> labels;  ///< what its series and usage records say of it; CheckLabel
  bool operator==(const RunRequest&) const = default;
};

/// Whether a label can be given: a key as Kubernetes has them (letters, digits, '-', '_', '.', '/', at most 128 bytes, a letter or digit
/// first and last), a value of at most 256 bytes of printable UTF-8. kInvalidArgument says what is wrong.
base::Status CheckLabel(const std::string& key, const std::string& value);

/// "plan": what another configuration would change.
struct PlanRequest {
  std::optional<std::string> text;     ///< a configuration; nothing: the one that counts now, as it stands on disk or in the cluster
  std::string name = "configuration";  ///< of the text, for errors
  bool explain = false;                ///< also which devices requests would get now, and why
  bool operator==(const PlanRequest&) const = default;
};

/// "door": devices move to another door.
struct DoorRequest {
  std::vector<std::string> devices;    ///< ids or indices
  std::string door;                    ///< "kubelet", "local", "none", "default": what the configuration says
  std::optional<base::Duration> wait;  ///< for those who hold them; nothing: what is held is refused
  bool dry_run = false;                ///< only told what would be done
  bool operator==(const DoorRequest&) const = default;
};

/// "usage": who used what, or who holds what unused.
struct UsageRequest {
  bool idle = false;                    ///< who holds what unused; then nothing else is said
  std::vector<std::string> by;          ///< api::UsageKeys
  std::optional<base::WallTime> since;  ///< nothing: since there are records
  std::optional<base::WallTime> until;  ///< nothing: now
  bool operator==(const UsageRequest&) const = default;
};

struct Request {
  Operation operation = Operation::kVersion;
  RunRequest run;      ///< of kRun
  std::string ticket;  ///< of kCancel
  PlanRequest plan;    ///< of kPlan
  DoorRequest door;    ///< of kDoor
  UsageRequest usage;  ///< of kUsage
  bool operator==(const Request&) const = default;
};

/// Reads one line. kInvalidArgument says everything that is wrong with it, kUnimplemented names the operations there are.
base::Result<Request> DecodeRequest(std::string_view line);
std::string EncodeRequest(const Request& request);

/// Somebody in the line.
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
  std::string expected_start;               ///< RFC 3339; empty: nobody knows
  bool resumable = false;                   ///< the place is kept when the agent ends, for who names the ticket soon after
  bool operator==(const WaitingRun&) const = default;
};

struct GrantedDevice {
  std::string id;
  int index = -1;
  std::string model;
  std::string slot;       ///< "GPU-5a…::3"; the device's own id where it is whole
  int shares = 1;         ///< that the device is cut into
  std::string sharing;    ///< "none", "time-slicing", "mps"
  std::string isolation;  ///< from those who have other shares: "none", "memory-per-process", ..., "hardware"
  bool operator==(const GrantedDevice&) const = default;
};

/// What the caller got; it is in its group already.
struct GrantedRun {
  std::string lease;
  std::vector<GrantedDevice> devices;
  std::map<std::string, std::string> environment;
  std::string enforcement;                                    ///< "devices", "visibility"
  std::string reason;                                         ///< why it is visibility only
  std::optional<base::Duration> time = {};                    ///< RunRequest::time
  std::optional<base::Duration> time_while_others_wait = {};  ///< then it may be ended while another user waits for its devices
  bool operator==(const GrantedRun&) const = default;
};

/// Where a device stands on its way from one door to another.
struct DeviceMove {
  std::string device;  ///< id
  int index = -1;
  std::string from, to;  ///< "kubelet", "local", "none"
  /// "unchanged", it belongs there already; "would-move", of a dry run; "waiting", withdrawn, for what `reason` says; "acknowledged",
  /// nobody has it any more, which is the end of the way to "none"; "offered", the end of any other.
  std::string state;
  std::string reason;  ///< what it waits for; of a dry run: who holds it now
  bool operator==(const DeviceMove&) const = default;
};

/// The agent that answers.
struct VersionAnswer {
  std::string version;
  int protocol = kProtocolVersion;
  std::int64_t pid = 0;
};

std::string EncodeError(const base::Error& error);
std::string EncodeWaiting(const WaitingRun& waiting);           ///< {"waiting": {...}}, any number of times before the last answer
std::string EncodeGranted(const GrantedRun& granted);           ///< {"granted": {...}}
std::string EncodeQueue(const std::vector<WaitingRun>& queue);  ///< {"queue": [...]}
std::string EncodeMoving(const DeviceMove& move);               ///< {"moving": {...}}, any number of times before the last answer
std::string EncodeMoved(const std::vector<DeviceMove>& moves);  ///< {"moved": [...]}
std::string EncodeVersion(const VersionAnswer& version);        ///< {"version", "protocol", "pid"}
std::string EncodeDone(std::string_view what);                  ///< {"done": "..."}

/// One answer to "run".
struct RunAnswer {
  std::optional<WaitingRun> waiting;
  std::optional<GrantedRun> granted;
};

/// One answer to "door".
struct DoorAnswer {
  std::optional<DeviceMove> moving;
  std::optional<std::vector<DeviceMove>> moved;
};

/// Each gives the error that an {"error": ...} answer carries, and kDataLoss for what is no such answer. Keys that a newer agent adds are
/// passed over.
base::Result<RunAnswer> DecodeRunAnswer(std::string_view line);
base::Result<DoorAnswer> DecodeDoorAnswer(std::string_view line);
base::Result<std::vector<WaitingRun>> DecodeQueue(std::string_view line);
base::Result<VersionAnswer> DecodeVersion(std::string_view line);
/// For answers whose content is somebody else's: the error where it is one, else the line itself.
base::Result<std::string> DecodeAny(std::string_view line);

}  // namespace penstock::edge::broker
