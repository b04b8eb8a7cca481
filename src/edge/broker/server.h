// The agent's side of the broker's socket: who is connected, lines in and out, bounds. Decides nothing about devices.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <sys/types.h>

#include "base/core/result.h"
#include "edge/broker/protocol.h"
#include "edge/broker/shares.h"
#include "os/core/fd.h"
#include "os/loop.h"

namespace penstock::edge::broker {

/// Who is at the other end (unix(7), SO_PEERCRED): as it was when it connected.
struct Peer {
  pid_t pid = 0;  ///< 0: not visible from here (another pid namespace)
  uid_t uid = 0;
  gid_t gid = 0;
  os::UniqueFd pidfd;  ///< empty where pid is 0 or the process has ended
};

/// One connection. On the loop's thread. After it has closed, everything here does nothing.
class Session {
 public:
  virtual ~Session() = default;
  virtual const Peer& peer() const = 0;
  /// A line before the last one of an answer.
  virtual void Progress(const std::string& line) = 0;
  /// The last line of an answer; the next request is read after it. Exactly once for each request.
  virtual void Answer(const std::string& line) = 0;
  virtual void Close() = 0;
  /// Called once, where the connection ends before the present request has been answered; replaces an earlier one.
  virtual void OnClosed(std::function<void()> callback) = 0;
};

struct ServerLimits {
  ShareLimits shares;
  std::size_t output_bytes = 4u << 20;   ///< unread, of one connection
  std::size_t unread_bytes = 16u << 20;  ///< of all; then the user with the most of them loses a connection
  std::size_t malformed = 16;            ///< requests that cannot be read, of one connection
  base::Duration idle = std::chrono::seconds(30);
};

/// Listens on "<run_dir>/penstock.sock". No connection keeps the loop for longer than a few requests or a millisecond at a time, and what
/// users may have of connections and requests follows Shares. On the loop's thread, or before it runs and after it has stopped.
class Server {
 public:
  using Limits = ServerLimits;
  /// Called with each request that could be read; one at a time for each session. What cannot be read is answered by the server.
  using Handler = std::function<void(std::shared_ptr<Session>, const Request&)>;

  Server(os::Loop& loop, std::string run_dir, std::string group, Handler handler, Limits limits = {});
  ~Server();  ///< Stop

  /// Makes the run directory and the socket: root:<group> 0660, or 0600 where the group does not exist or is not ours to give. A socket
  /// that a killed agent left is replaced: the caller holds the run directory's lock.
  base::Status Start();

  /// Closes all connections and removes the socket.
  void Stop();

  /// Who may connect, for people: "members of group penstock", "root only: there is no group penstock".
  const std::string& access() const;

  std::size_t clients() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::edge::broker
