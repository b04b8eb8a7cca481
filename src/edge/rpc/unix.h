// gRPC over unix sockets: targets, channels, status codes. For the rooms of protocols that speak it; no gRPC header is needed to include
// it.
#pragma once

#include <memory>
#include <string>

#include "base/core/result.h"

namespace grpc {
class Channel;
class Status;
}  // namespace grpc

namespace penstock::edge::rpc {

/// Bytes that the path of a unix socket may have (sockaddr_un.sun_path without its NUL).
inline constexpr std::size_t kMostSocketPath = 107;

/// "unix:///run/x.sock", percent-encoded as gRPC's parser wants it. The path is absolute.
std::string UnixTarget(const std::string& path);

/// A connection of its own that shares no back-off with earlier ones to the same path.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& path);

/// To be called before anything else of gRPC: starts it for the rest of the process's life and sends what it has to say to our log. Later
/// calls do nothing.
void StartGrpc();

base::Error FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const base::Error& error);

}  // namespace penstock::edge::rpc
