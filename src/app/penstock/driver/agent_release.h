// Has the agent of the node let go of the driver, for as long as this program lives.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/core/clock.h"
#include "protocol/broker/client.h"

namespace penstock::app {

/// The agent returns to the driver when this object ends.
class AgentRelease {
 public:
  /// `say` gets each remark for people, once.
  AgentRelease(std::string agent_dir, std::string vendor,
               std::function<void(const std::string&)> say)
      : agent_dir_(std::move(agent_dir)), vendor_(std::move(vendor)), say_(std::move(say)) {}

  /// Asks the agent that runs now, if there is one and it was not asked yet. No agent, or one that
  /// does not answer, is no error: what it keeps open is found later. Blocks for at most
  /// `patience`.
  void Ensure(base::Duration patience = std::chrono::seconds(10));

  /// The agent's process, without asking it for anything; 0: none accepts a connection, or it is
  /// not visible here. Blocks for at most `patience`.
  pid_t Pid(base::Duration patience = std::chrono::seconds(10));

 private:
  bool IsAlive();
  void Say(const std::string& remark);

  const std::string agent_dir_, vendor_;
  const std::function<void(const std::string&)> say_;
  std::optional<protocol::broker::Client> client_;
  std::string said_;
};

}  // namespace penstock::app
