#include "sim/state_file.h"

#include <fstream>

#include <gmock/gmock.h>

#include "sim/compile.h"
#include "sim/testing.h"

namespace penstock::sim {
namespace {

using testing::Folder;
using ::testing::HasSubstr;

class StateFileTest : public ::testing::Test {
 protected:
  StateFileTest() {
    Started(folder_ / "machine", "t4-x1");
    path_ = StatePath(folder_ / "machine");
  }
  static void Started(const std::string& root, const std::string& name) {
    (void)testing::Started(root, name);
  }
  std::string OpenError() {
    const auto file = StateFile::Open(folder_ / "machine");
    return file.ok() ? "" : file.error().message();
  }
  void Overwrite(std::streamoff offset, std::uint32_t word) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset);
    file.write(reinterpret_cast<const char*>(&word), sizeof word);
  }
  Folder folder_;
  std::string path_;
};

TEST_F(StateFileTest, SaysThatNoMachineWasStarted) {
  const base::Error file = StateFile::Open(folder_ / "elsewhere").error();
  EXPECT_EQ(file.code(), base::Code::kNotFound);
  EXPECT_THAT(file.message(), HasSubstr("penstock-sim start"));
}

TEST_F(StateFileTest, SaysThatItWasCutShort) {
  for (const long size : {static_cast<long>(sizeof(SimState)) - 1, 5000L, 16L, 7L}) {
    ASSERT_EQ(truncate(path_.c_str(), size), 0);
    EXPECT_THAT(OpenError(), HasSubstr("truncated")) << size;
  }
}

TEST_F(StateFileTest, SaysThatItIsForeign) {
  Overwrite(0, 0x464c457f);
  EXPECT_THAT(OpenError(), HasSubstr("not a penstock-sim state file"));
  ASSERT_EQ(truncate(path_.c_str(), 0), 0);
  EXPECT_THAT(OpenError(), HasSubstr("not a penstock-sim state file"));
}

TEST_F(StateFileTest, SaysThatAnotherVersionWroteIt) {
  Overwrite(offsetof(SimState, layout), kSimLayout + 1);
  EXPECT_THAT(OpenError(), HasSubstr("another version of penstock-sim"));
}

TEST_F(StateFileTest, RefusesCountsThatPointPastItsTables) {
  Overwrite(offsetof(SimState, gpu_count), kSimMaxGpus + 1);
  EXPECT_THAT(OpenError(), HasSubstr("not a penstock-sim state file"));
}

TEST_F(StateFileTest, AChangeIsSeenByAnotherMappingAndCountsUp) {
  auto writer = StateFile::Open(folder_ / "machine"), reader = StateFile::Open(folder_ / "machine");
  ASSERT_TRUE(writer.ok() && reader.ok());
  const std::uint32_t before = reader->state().generation;
  {
    auto change = writer->Begin();
    ASSERT_TRUE(change.ok());
    EXPECT_EQ(reader->state().generation & 1u, 1u);
    (*change)->gpus[0].temperature = 77;
    change->AddEvent(0, 8, 31);
  }
  EXPECT_EQ(reader->state().gpus[0].temperature, 77u);
  EXPECT_EQ(reader->state().generation, before + 2);
  EXPECT_EQ(reader->state().event_head, 1u);
  EXPECT_EQ(reader->state().events[1].data, 31u);
}

}  // namespace
}  // namespace penstock::sim
