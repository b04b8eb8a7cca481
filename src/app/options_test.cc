#include "app/options.h"

#include <filesystem>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/file.h"

namespace penstock::app {
namespace {

using ::testing::HasSubstr;

Settings Parse(const std::string& line) {
  CLI::App app;
  Settings settings;
  AddNodeOptions(app, settings);
  app.add_subcommand("verb")->fallthrough();
  app.parse(line);
  return settings;
}

std::string Written(const std::string& content) {
  std::string path = testing::TempDir() + "/options_test_" + testing::UnitTest::GetInstance()->current_test_info()->name() + ".yaml";
  EXPECT_TRUE(os::WriteFileAtomically(path, "apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\n" + content).ok());
  return path;
}

TEST(Options, AreUnderstoodBeforeAndAfterTheVerb) {
  for (const api::PathOption& option : api::PathOptions()) {
    const std::string flag(option.flag);
    for (const std::string& line : {flag + " /x/y verb", "verb " + flag + " /x/y", "verb " + flag + "=/x/y"}) {
      const auto config = Resolve(Parse(line));
      ASSERT_TRUE(config.ok()) << line;
      EXPECT_EQ(config->paths.*option.member, "/x/y") << line;
    }
  }
  EXPECT_EQ(Resolve(Parse("verb --node-name n --listen :1"))->node_name, "n");
  EXPECT_EQ(Resolve(Parse("verb --node-name n --listen :1"))->listen, ":1");
}

TEST(Options, CountMoreThanTheFile) {
  const std::string file = Written("node: {name: from-file}\npaths: {runDir: /a, stateDir: /b}\n");
  const auto config = Resolve(Parse("--config " + file + " --run-dir /c"));
  ASSERT_TRUE(config.ok()) << config.error().message();
  EXPECT_EQ(config->paths.run_dir, "/c");
  EXPECT_EQ(config->paths.state_dir, "/b");
  EXPECT_EQ(config->node_name, "from-file");
}

TEST(Options, TheLastOfAFlagCounts) { EXPECT_EQ(Resolve(Parse("--run-dir /a verb --run-dir /b"))->paths.run_dir, "/b"); }

TEST(Options, TakeRelativePathsFromTheWorkingFolder) {
  const auto config = Resolve(Parse("--run-dir ./x/../run/ --driver-root /"));
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->paths.run_dir, (std::filesystem::current_path() / "run").string());
  EXPECT_EQ(config->paths.driver_root, "/");
}

TEST(Options, ReportABadFileAndABadFlag) {
  EXPECT_THAT(Resolve(Parse("--config /does/not/exist")).error().message(), HasSubstr("/does/not/exist"));
  EXPECT_THAT(Resolve(Parse("--listen nowhere")).error().message(), HasSubstr("--listen"));
  EXPECT_THAT(Resolve(Parse("--config " + Written("pats: {}\n"))).error().message(), HasSubstr("did you mean \"paths\"?"));
}

TEST(Options, CanBeHandedToAnotherProgram) {
  EXPECT_THAT(ToArguments(Parse("--run-dir /r verb --listen off")), testing::ElementsAre("--listen", "off", "--run-dir", "/r"));
}

}  // namespace
}  // namespace penstock::app
