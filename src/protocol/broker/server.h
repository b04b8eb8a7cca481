// Serves the agent's side of the broker's socket: connections, lines in and out, limits. Decides
// nothing about devices.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <sys/types.h>

#include "base/core/result.h"
#include "os/core/fd.h"
#include "os/loop.h"
#include "protocol/broker/protocol.h"
#include "protocol/broker/shares.h"

namespace penstock::protocol::broker {

/// The process at the other end, as it was when it connected (unix(7), SO_PEERCRED).
struct Peer {
  pid_t pid = 0;  ///< 0: not visible to the agent (another pid namespace)
  uid_t uid = 0;
  gid_t gid = 0;
  os::UniqueFd pidfd;  ///< empty if pid is 0 or the process has ended
};

/// One connection. On the loop's thread. After it has closed, all its functions do nothing.
class Session {
 public:
  virtual ~Session() = default;
  virtual const Peer& peer() const = 0;
  /// Sends a line before the last one of an answer.
  virtual void Progress(const std::string& line) = 0;
  /// Sends the last line of an answer; the next request is read after it. Exactly once for each
  /// request.
  virtual void Answer(const std::string& line) = 0;
  virtual void Close() = 0;
  /// Sets a callback that is called once if the connection ends before the present request has been
  /// answered; replaces an earlier one.
  virtual void OnClosed(std::function<void()> callback) = 0;
};

struct ServerLimits {
  ShareLimits shares;
  std::size_t output_bytes = 4u << 20;   ///< unread output of one connection
  std::size_t unread_bytes = 16u << 20;  ///< unread output of all connections; beyond this, the
                                         ///< user with the most of it loses a connection
  std::size_t malformed = 16;            ///< malformed requests of one connection
  base::Duration idle = std::chrono::seconds(30);
};

/// Listens on "<run_dir>/penstock.sock". A connection occupies the loop for at most a few requests
/// or a millisecond at a time; Shares limits the connections and requests of each user. On the
/// loop's thread, or before it runs and after it has stopped.
class Server {
 public:
  using Limits = ServerLimits;
  /// Called with each well-formed request, one at a time for each session. The server answers
  /// malformed requests itself.
  using Handler = std::function<void(std::shared_ptr<Session>, const Request&)>;

  Server(os::Loop& loop, std::string run_dir, std::string group, Handler handler,
         Limits limits = {});
  ~Server();  ///< calls Stop

  /// Creates the run directory and the socket: root:<group> 0660, or 0600 if the group does not
  /// exist or the agent may not give the socket to it. Replaces a socket that a killed agent left:
  /// the caller holds the run directory's lock.
  base::Status Start();

  /// Closes all connections and removes the socket.
  void Stop();

  /// Describes for people which users may connect: "members of group penstock", "only root and the
  /// agent's user: there is no group penstock".
  const std::string& access() const;

  std::size_t clients() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::protocol::broker
