#include "protocol/metricssvc/health_server.h"

#include <chrono>

#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/testing/must.h"
#include "metricssvc.grpc.pb.h"
#include "os/testing/temporary_folder.h"
#include "protocol/rpc/unix.h"

namespace penstock::protocol::metricssvc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class HealthServerTest : public testing::Test {
 protected:
  /// "0 GPU-a 0000:05:00.0 healthy pod : train", a line each; as a device plugin asks.
  std::vector<std::string> Listed(const std::vector<std::string>& numbers = {}) const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    const auto stub = ::metricssvc::MetricsService::NewStub(rpc::OpenChannel(socket_));
    ::metricssvc::GPUStateResponse response;
    ::metricssvc::GPUGetRequest request;
    for (const std::string& number : numbers) request.add_id(number);
    const grpc::Status status = numbers.empty()
                                    ? stub->List(&context, ::metricssvc::Empty(), &response)
                                    : stub->GetGPUState(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::vector<std::string> lines;
    for (const auto& state : response.gpustate()) {
      lines.push_back(state.id() + " " + state.uuid() + " " + state.device() + " " +
                      state.health());
      for (const std::string& holder : state.associatedworkload()) lines.back() += " " + holder;
    }
    return lines;
  }

  os::TemporaryFolder folder_;
  const std::string socket_ = folder_ / "health.socket";
};

TEST_F(HealthServerTest, ListsWhatWasPublishedLast) {
  const auto server = Must(HealthServer::Start(socket_));
  EXPECT_THAT(Listed(), IsEmpty());
  const DeviceHealth first{.number = "0", .id = "GPU-a", .pci = "0000:05:00.0"};
  server->Publish({first, {"1", "GPU-b", "0000:26:00.0", false, {"pod : train"}}});
  EXPECT_THAT(Listed(), ElementsAre("0 GPU-a 0000:05:00.0 healthy",
                                    "1 GPU-b 0000:26:00.0 unhealthy pod : train"));
  EXPECT_THAT(Listed({"1", "7"}), ElementsAre("1 GPU-b 0000:26:00.0 unhealthy pod : train"));
  server->Publish({first});
  EXPECT_THAT(Listed(), ElementsAre("0 GPU-a 0000:05:00.0 healthy"));
}

TEST_F(HealthServerTest, OnlyItsUserCanConnect) {
  const auto server = Must(HealthServer::Start(socket_));
  struct stat status {};
  ASSERT_EQ(::lstat(socket_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(HealthServerTest, ASocketThatIsServedIsLeftAloneAndADeadOneIsReplaced) {
  auto first = Must(HealthServer::Start(socket_));
  EXPECT_EQ(HealthServer::Start(socket_).error().code(), base::Code::kAlreadyExists);
  EXPECT_TRUE(first->IsServed());
  ASSERT_EQ(::unlink(socket_.c_str()), 0);
  EXPECT_FALSE(first->IsServed());
  const auto second = Must(HealthServer::Start(socket_));
  first.reset();
  EXPECT_TRUE(second->IsServed()) << "the end of the first must not remove the socket";
  second->Publish({{.number = "0"}});
  EXPECT_THAT(Listed(), ElementsAre("0   healthy"));
}

TEST_F(HealthServerTest, AFolderThatOthersCanWriteIsRefused) {
  ASSERT_EQ(::mkdir((folder_ / "open").c_str(), 0777), 0);
  ASSERT_EQ(::chmod((folder_ / "open").c_str(), 0777), 0);
  EXPECT_EQ(HealthServer::Start(folder_ / "open/health.socket").error().code(),
            base::Code::kPermissionDenied);
  ASSERT_EQ(::mkdir(socket_.c_str(), 0700), 0);  // as an engine does for a mount of a file
  EXPECT_EQ(HealthServer::Start(socket_).error().code(), base::Code::kAlreadyExists);
  EXPECT_EQ(HealthServer::Start(folder_ / "absent/health.socket").error().code(),
            base::Code::kNotFound);
}

}  // namespace
}  // namespace penstock::protocol::metricssvc
