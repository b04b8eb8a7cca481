// Tests the conversion of messages that a kubelet sends, and of messages that it should not send.
#include "protocol/kubelet/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::protocol::kubelet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<PluginDevice> kDevices = {{"G0"}, {"G1"}, {"G2"}};

v1beta1::AllocateRequest RequestFor(const std::vector<std::vector<std::string>>& containers) {
  v1beta1::AllocateRequest message;
  for (const auto& ids : containers) {
    auto* container = message.add_container_requests();
    for (const std::string& id : ids) container->add_devices_ids(id);
  }
  return message;
}

TEST(ReadRequest, SortsTheIdsOfEachContainer) {
  const auto request = ReadRequest(RequestFor({{"G2", "G0"}, {"G1"}}), kDevices, "acme.com/gpu");
  ASSERT_TRUE(request.ok()) << request.error().ToString();
  EXPECT_THAT(request->containers, ElementsAre(ElementsAre("G0", "G2"), ElementsAre("G1")));
}

TEST(ReadRequest, RefusesADeviceForTwoContainers) {
  const base::Error request =
      ReadRequest(RequestFor({{"G0", "G1"}, {"G1"}}), kDevices, "acme.com/gpu").error();
  EXPECT_EQ(request.code(), base::Code::kInvalidArgument);
  EXPECT_THAT(request.message(), HasSubstr("G1"));
}

}  // namespace
}  // namespace penstock::protocol::kubelet
