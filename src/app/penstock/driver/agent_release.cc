#include "app/penstock/driver/agent_release.h"

#include "base/core/printable.h"
#include "base/core/strings.h"
#include "protocol/broker/protocol.h"

namespace penstock::app {

using base::Code;

void AgentRelease::Say(const std::string& remark) {
  if (said_ == remark) return;
  said_ = remark;
  say_(base::Printable(remark));
}

/// The agent sends nothing until it ends.
bool AgentRelease::IsAlive() {
  if (!client_) return false;
  const auto line = client_->ReadLine(base::Duration::zero());
  return line.ok() || line.error().code() == Code::kDeadlineExceeded;
}

void AgentRelease::Ensure(base::Duration patience) {
  if (IsAlive()) return;
  client_.reset();
  auto client = protocol::broker::Client::Connect(agent_dir_, patience);
  if (!client.ok()) {
    const bool none = client.error().code() == Code::kUnavailable;
    return Say(none ? "no agent runs on this node"
                    : "cannot ask the agent to release the driver: " + client.error().message());
  }
  protocol::broker::Request request{.operation = protocol::broker::Operation::kRelease};
  request.release.vendor = vendor_;
  (void)client->SendLine(EncodeRequest(request));
  const auto line = client->ReadLine(patience);
  const auto released = line.ok() ? protocol::broker::DecodeReleased(*line) : line.error();
  // One that does not answer yet may still do what it was asked for.
  if (released.ok() || released.error().code() == Code::kDeadlineExceeded)
    client_ = *std::move(client);
  if (!released.ok())
    return Say("the agent did not release the driver: " + released.error().message());
  Say("the agent has released the driver" +
      (released->remaining.empty() ? "" : ", but " + base::Join(released->remaining, "; ")));
}

pid_t AgentRelease::Pid(base::Duration patience) {
  if (IsAlive()) return client_->Pid();
  const auto client = protocol::broker::Client::Connect(agent_dir_, patience);
  return client.ok() ? client->Pid() : 0;
}

}  // namespace penstock::app
