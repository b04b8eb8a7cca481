#include "protocol/rpc/unix.h"

#include <cctype>
#include <mutex>

#include <absl/synchronization/mutex.h>
#include <google/protobuf/stubs/logging.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/status.h>

#include "base/log.h"

namespace penstock::protocol::rpc {
namespace {

// The kubelet's own limit for pod-resources answers (podresources/constants.go).
constexpr int kMaxAnswerBytes = 16 << 20;

}  // namespace

std::string UnixTarget(const std::string& path) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string target = "unix://";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 &&
        (std::isalnum(byte) != 0 || std::string_view("/-._~").find(c) != std::string_view::npos)) {
      target += c;
    } else {
      target += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return target;
}

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& path) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // Go's server refuses an authority that contains a path.
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  return grpc::CreateCustomChannel(UnixTarget(path), grpc::InsecureChannelCredentials(), arguments);
}

void StartGrpc() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Debian builds Abseil without NDEBUG: each mutex then checks for deadlocks in a graph of all
    // mutexes, which grows with the calls under way.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    gpr_set_log_function([](gpr_log_func_args* entry) {
      const auto level = entry->severity == GPR_LOG_SEVERITY_ERROR ? base::kWarn : base::kDebug;
      base::Log(level, "message from gRPC", {{"text", entry->message}});
    });
    google::protobuf::SetLogHandler(
        [](google::protobuf::LogLevel, const char*, int, const std::string& message) {
          base::Log(base::kWarn, "message from protobuf", {{"text", message}});
        });
    // grpc_shutdown is never called: the last call joins threads, one of which may poll for ten
    // more seconds.
    grpc_init();
  });
}

base::Error FromGrpc(const grpc::Status& status) {
  const int code = status.error_code();
  const bool known = code >= static_cast<int>(base::Code::kCancelled) &&
                     code <= static_cast<int>(base::Code::kUnauthenticated);
  return {known ? static_cast<base::Code>(code) : base::Code::kUnknown, status.error_message()};
}

grpc::Status ToGrpc(const base::Error& error) {
  return {static_cast<grpc::StatusCode>(error.code()), error.message()};
}

}  // namespace penstock::protocol::rpc
