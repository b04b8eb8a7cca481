// The gRPC server of one plugin on one socket: streams, requests, answers in time. Knows nothing of registration. Private to this room.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "edge/kubelet/device_plugin.h"

namespace penstock::edge::kubelet {

/// Serves from Start to its destructor. All functions from any thread.
class PluginServer {
 public:
  struct Config {
    std::string socket;
    std::string resource;
    base::Duration answer_within{};
    decltype(DevicePlugin::Callbacks::allocate) allocate;
    decltype(DevicePlugin::Callbacks::prefer) prefer;
    std::function<void()> streams_changed;  ///< on a thread of gRPC, after the number of streams changed
  };

  /// kUnavailable where the socket cannot be made.
  static base::Result<std::unique_ptr<PluginServer>> Start(Config config);

  /// Ends streams, fails what is pending, waits for both (milliseconds), removes the socket.
  ~PluginServer();

  /// Sends the list to all streams, and to those that come; a stream that is slow gets the latest only. Sorted by id, ids unique.
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

}  // namespace penstock::edge::kubelet
