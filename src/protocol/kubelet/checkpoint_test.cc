#include "protocol/kubelet/checkpoint.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/testing/must.h"
#include "os/testing/temporary_folder.h"

namespace penstock::protocol::kubelet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// As Kubernetes 1.36 writes it (there on one line).
constexpr char kWritten[] = R"({"Data":{"PodDeviceEntries":[
  {"PodUID":"0a1b","ContainerName":"train","ResourceName":"nvidia.com/gpu","DeviceIDs":{"0":["GPU-b"],"1":["GPU-a"]},"AllocResp":"Cg=="},
  {"PodUID":"2c3d","ContainerName":"serve","ResourceName":"rdma/hca","DeviceIDs":{"-1":["mlx5_0"]},"AllocResp":null}],
  "RegisteredDevices":{"nvidia.com/gpu":["GPU-c","GPU-a","GPU-b"],"rdma/hca":[]}},"Checksum":4186134498})";

TEST(Checkpoint, ReadsWhatTheKubeletWrites) {
  const auto checkpoint = Must(ParseCheckpoint(kWritten, "checkpoint"));
  EXPECT_THAT(checkpoint.entries,
              ElementsAre(CheckpointEntry{"0a1b", "train", "nvidia.com/gpu", {"GPU-a", "GPU-b"}},
                          CheckpointEntry{"2c3d", "serve", "rdma/hca", {"mlx5_0"}}));
  EXPECT_THAT(checkpoint.registered.at("nvidia.com/gpu"), ElementsAre("GPU-a", "GPU-b", "GPU-c"));
  EXPECT_THAT(checkpoint.registered.at("rdma/hca"), IsEmpty());
}

TEST(Checkpoint, ReadsTheOlderListOfIdsAndGosNulls) {
  const auto older = Must(ParseCheckpoint(
      R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r","DeviceIDs":["b","a"]}],"RegisteredDevices":null}})",
      "checkpoint"));
  EXPECT_THAT(older.entries, ElementsAre(CheckpointEntry{"u", "c", "r", {"a", "b"}}));
  const auto empty = Must(ParseCheckpoint(
      R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1,"Later":{}})",
      "checkpoint"));
  EXPECT_THAT(empty.entries, IsEmpty());
}

TEST(Checkpoint, ReadsFiveThousandSlots) {
  std::string text = R"({"Data":{"PodDeviceEntries":[)";
  for (int i = 0; i < 5000; ++i) {
    text +=
        (i == 0 ? "" : ",") +
        std::string(
            R"({"PodUID":"9f0c6d0a-0000-0000-0000-000000000000","ContainerName":"c","ResourceName":)") +
        R"("nvidia.com/gpu","DeviceIDs":{"0":["GPU-00000000-0000-0000-0000-000000000000::)" +
        std::to_string(i) + R"("]},"AllocResp":")" + std::string(1000, 'A') + "\"}";
  }
  const auto checkpoint =
      Must(ParseCheckpoint(text + R"(],"RegisteredDevices":{}},"Checksum":1})", "checkpoint"));
  EXPECT_THAT(checkpoint.entries, SizeIs(5000));
}

TEST(Checkpoint, SaysWhatIsWrongAndWhere) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "checkpoint"},
      {"[]", "Data must be a map"},
      {R"({"Data":7})", "checkpoint:1:9: Data must be a map"},
      {R"({"Data":{"PodDeviceEntries":{}}})", "PodDeviceEntries must be a list"},
      {R"({"Data":{"PodDeviceEntries":[7]}})", "must be a map, not an integer"},
      {R"({"Data":{"PodDeviceEntries":[{"PodUID":7,"ContainerName":"c","ResourceName":"r"}]}})",
       "PodUID must be a string"},
      {R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ResourceName":"r"}]}})",
       "ContainerName is missing"},
      {R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r","DeviceIDs":{"0":"a"}}]}})",
       "DeviceIDs.0"},
      {R"({"Data":{"RegisteredDevices":{"r":[1]}}})", "RegisteredDevices.r must have strings only"},
      {R"({"Data":{"PodDeviceEntries":[],"PodDeviceEntries":[]}})", "PodDeviceEntries"},
      {R"({"Data":{"PodDeviceEntries":[{"PodUID")", "checkpoint:1"},
      {"{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"\xff\"}]}}", "UTF-8"},
  };
  for (const auto& [text, message] : wrong) {
    const auto checkpoint = ParseCheckpoint(text, "checkpoint");
    ASSERT_FALSE(checkpoint.ok()) << text;
    EXPECT_THAT(checkpoint.error().message(), HasSubstr(message)) << text;
  }
}

TEST(Checkpoint, NamesAllWrongEntriesAtOnce) {
  const auto checkpoint = ParseCheckpoint(R"({"Data":{"PodDeviceEntries":[1,2,3]}})", "checkpoint");
  const std::string& message = checkpoint.error().message();
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n') + 1, 3) << message;
}

TEST(Checkpoint, IsNotFoundWhereTheKubeletWroteNone) {
  const os::TemporaryFolder folder;
  EXPECT_EQ(ReadCheckpoint(folder.path()).error().code(), base::Code::kNotFound);
  folder.Write("device-plugins/kubelet_internal_checkpoint", kWritten);
  EXPECT_TRUE(ReadCheckpoint(folder.path()).ok());
}

}  // namespace
}  // namespace penstock::protocol::kubelet
