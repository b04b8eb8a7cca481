// Tests finding the root with states as runc and crun write them, and with invalid ones.
#include "hook/container.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hook/nvidia/prestart.h"
#include "os/core/testing/temporary_folder.h"

namespace penstock::hook {
namespace {

using testing::HasSubstr;

class ContainerTest : public testing::Test {
 protected:
  std::string State(const std::string& more = "") {
    return R"({"ociVersion":"1.0.2","id":"c","status":"creating","pid":1,"bundle":")" +
           bundle_.path() + "\"" + more + "}";
  }
  std::string Problem(const std::string& state) {
    const auto root = FindRoot(state);
    return root.ok() ? "" : root.error().message();
  }

  os::TemporaryFolder bundle_;
};

TEST_F(ContainerTest, TheStateMayNameTheRoot) {
  EXPECT_EQ(*FindRoot(State(R"(,"root":"/run/rootfs")")), "/run/rootfs");
}

TEST_F(ContainerTest, ElseTheBundleDoes) {
  bundle_.Write(
      "config.json",
      R"({"ociVersion":"1.0.2","root":{"path":"rootfs","readonly":true},"process":{"args":["sh"]}})");
  EXPECT_EQ(*FindRoot(State()), bundle_ / "rootfs");
  bundle_.Write("config.json", R"({"root":{"path":"/var/lib/c/rootfs"}})");
  EXPECT_EQ(*FindRoot(State()), "/var/lib/c/rootfs");
}

TEST_F(ContainerTest, TheRootMayBeALink) {
  bundle_.Write("real/file", "inside");
  bundle_.Link("rootfs", "real");
  bundle_.Write("config.json", R"({"root":{"path":"rootfs"}})");
  const auto root = OpenRoot(State(), os::UniqueFd());
  ASSERT_TRUE(root.ok()) << root.error().message();
  EXPECT_EQ(*root->Read("file"), "inside");
}

TEST_F(ContainerTest, EachThingThatIsMissingIsNamed) {
  EXPECT_THAT(Problem(""), HasSubstr("no container state on standard input"));
  EXPECT_THAT(Problem("{"), HasSubstr("the container's state:1:1: syntax error"));
  EXPECT_THAT(Problem("[]"), HasSubstr("is a list, not a map"));
  EXPECT_THAT(Problem("{}"), HasSubstr("names neither a root nor a bundle"));
  EXPECT_THAT(Problem(State()), HasSubstr(bundle_ / "config.json: No such file"));
  bundle_.Write("config.json", "{}");
  EXPECT_THAT(Problem(State()), HasSubstr("has no root.path"));
  bundle_.Write("config.json", R"({"root":{"path":7}})");
  EXPECT_THAT(Problem(State()), HasSubstr("has no root.path"));
  bundle_.Write("config.json", R"({"root":{"path":"gone"}})");
  EXPECT_EQ(OpenRoot(State(), os::UniqueFd()).error().code(), Code::kNotFound);
}

TEST_F(ContainerTest, TheMachinesOwnRootIsNoContainers) {
  EXPECT_EQ(OpenRoot(State(R"(,"root":"/")"), os::UniqueFd()).error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(OpenRoot(State(R"(,"root":"etc")"), os::UniqueFd()).error().code(),
            Code::kInvalidArgument);
}

TEST_F(ContainerTest, AContainerThatAsksForGpusDoesNotStartWithoutThem) {
  const auto problem = [this](const std::string& environment) {
    bundle_.Write("config.json", R"({"process":{"env":[)" + environment + "]}}");
    const auto done = CheckPrestart(State());
    return done.ok() ? std::string() : done.error().message();
  };
  EXPECT_THAT(problem(R"("A=b","NVIDIA_VISIBLE_DEVICES=0,1")"),
              HasSubstr("NVIDIA_VISIBLE_DEVICES=\"0,1\""));
  EXPECT_THAT(problem(R"("NVIDIA_VISIBLE_DEVICES=0")"), HasSubstr("--runtime=nvidia"));
  EXPECT_THAT(problem(R"("NVIDIA_VISIBLE_DEVICES=void","NVIDIA_VISIBLE_DEVICES=all")"),
              HasSubstr("\"all\""));  // docker's value is the last
  EXPECT_NE(problem(R"("NVIDIA_VISIBLE_DEVICES=none")"), "");
  for (const char* nothing :
       {"", R"("NVIDIA_VISIBLE_DEVICES=")", R"("NVIDIA_VISIBLE_DEVICES=void")",
        R"("NVIDIA_VISIBLE_DEVICES=all","NVIDIA_VISIBLE_DEVICES=void")",
        R"("NVIDIA_VISIBLE_DEVICES_=all", 7)"})
    EXPECT_EQ(problem(nothing), "") << nothing;
  EXPECT_THAT(problem("\"NVIDIA_VISIBLE_DEVICES=0\\u001b[2J" + std::string(5000, 'x') + "\""),
              testing::AllOf(HasSubstr("\"0?[2Jxxx"), testing::Not(HasSubstr("\x1b")),
                             testing::SizeIs(testing::Lt(600u))));
  bundle_.Write("config.json", "[");
  EXPECT_FALSE(CheckPrestart(State()).ok());
  EXPECT_FALSE(CheckPrestart("{}").ok());
}

TEST_F(ContainerTest, ADeepOrLongStateIsRefused) {
  EXPECT_FALSE(FindRoot(std::string(100'000, '[')).ok());
  EXPECT_FALSE(FindRoot("{\"root\":\"" + std::string(kMaxStateBytes, 'x') + "\"}").ok());
}

}  // namespace
}  // namespace penstock::hook
