// Runs the gRPC server of one plugin on one socket: streams, requests, and answers in time. Does
// not register. Private to this folder.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "protocol/kubelet/device_plugin.h"

namespace penstock::protocol::kubelet {

/// Serves from Start to its destructor. Call its functions from any thread.
class PluginServer {
 public:
  struct Config {
    std::string socket;
    std::string resource;
    base::Duration answer_within{};
    PluginHandler* handler = nullptr;
    /// Called on a gRPC thread after the number of streams changed.
    std::function<void()> streams_changed;
  };

  /// kUnavailable if the socket cannot be created.
  static base::Result<std::unique_ptr<PluginServer>> Start(Config config);

  /// Ends streams, fails pending requests, waits for both (milliseconds), and removes the socket.
  ~PluginServer();

  /// Sends the list to all streams, present and future; a slow stream gets only the latest one. The
  /// list is sorted by id, ids are unique.
  void Publish(std::shared_ptr<const std::vector<PluginDevice>> devices);

  struct Streams {
    std::size_t open = 0;
    std::uint64_t opened = 0;  ///< since Start
  };
  Streams streams() const;

  const std::string& socket() const;

 private:
  struct Impl;
  explicit PluginServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::protocol::kubelet
