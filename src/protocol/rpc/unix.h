// Opens gRPC channels over unix sockets and converts gRPC's status codes. Needs no gRPC header.
#pragma once

#include <memory>
#include <string>

#include "base/core/result.h"

namespace grpc {
class Channel;
class Status;
}  // namespace grpc

namespace penstock::protocol::rpc {

/// The longest path of a unix socket in bytes (sockaddr_un.sun_path without its NUL).
inline constexpr std::size_t kMaxSocketPath = 107;

/// Returns "unix:///run/x.sock", percent-encoded as gRPC's parser requires. The path is absolute.
std::string UnixTarget(const std::string& path);

/// Opens a connection of its own, which shares no back-off with earlier ones to the same path.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& path);

/// Starts gRPC for the rest of the process's life and sends its messages to our log. Call it before
/// anything else of gRPC; later calls do nothing.
void StartGrpc();

base::Error FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const base::Error& error);

}  // namespace penstock::protocol::rpc
