// gRPC over unix sockets: targets, channels, status codes. Private to this room; no gRPC header is needed to include it.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace grpc {
class Channel;
class Status;
}  // namespace grpc

namespace penstock::edge::kubelet {

/// Bytes that the path of a unix socket may have (sockaddr_un.sun_path without its NUL).
inline constexpr std::size_t kMostSocketPath = 107;

/// "unix:///run/x.sock", percent-encoded as gRPC's parser wants it. The path is absolute.
std::string UnixTarget(const std::string& path);

/// A connection of its own that shares no back-off with earlier ones to the same path.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& path);

/// Sends what gRPC and protobuf themselves have to say to our log. Once in a process's life; later calls do nothing.
void RouteGrpcLog();

base::Error FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const base::Error& error);

}  // namespace penstock::edge::kubelet
