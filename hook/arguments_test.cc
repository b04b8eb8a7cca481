// Tests command lines as CDI specifications contain them.
#include "hook/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/testing/must.h"

namespace penstock::hook {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kFlags[] = {"folder", "ldconfig-path"};

base::Result<Arguments> Parse(const std::vector<std::string>& words) {
  return Arguments::Parse(words, kFlags);
}
base::Result<HookCall> Read(const std::vector<std::string>& words) { return ReadCall(words); }

TEST(Arguments, TakesFlagsInAllTheirForms) {
  const auto arguments = Must(Parse(
      {"--folder", "/a", "--folder=/b,/c", "-folder", "/a", "--ldconfig-path=@/sbin/ldconfig"}));
  EXPECT_THAT(arguments.List("folder"), ElementsAre("/a", "/b", "/c"));
  EXPECT_EQ(arguments.Text("ldconfig-path"), "@/sbin/ldconfig");
  EXPECT_EQ(Parse({})->Text("folder"), "");
  EXPECT_THAT(Parse({})->List("folder"), IsEmpty());
}

TEST(Arguments, SaysWhatIsWrongInOneSentence) {
  EXPECT_EQ(Parse({"--folders", "/a"}).error().message(),
            "unknown flag --folders; known flags: --folder, --ldconfig-path");
  EXPECT_EQ(Parse({"--folder"}).error().message(), "flag --folder needs a value");
  EXPECT_THAT(Parse({"/a"}).error().message(), HasSubstr("unexpected argument \"/a\""));
}

TEST(Arguments, FindTheHookHoweverTheProgramIsCalled) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"chmod", "--mode", "755"},
        {"hook", "chmod", "--mode", "755"},
        {"--debug", "--quiet=true", "-d", "hook", "chmod", "--mode", "755"},
        {"--config", "chmod", "hook", "chmod", "--mode", "755"}}) {
    const auto call = Must(Read(words));
    EXPECT_EQ(call.hook, "chmod");
    EXPECT_THAT(call.words, ElementsAre("--mode", "755"));
  }
  EXPECT_EQ(Read({"hook"})->hook, std::nullopt);
  EXPECT_TRUE(Read({"--version"})->version);
  EXPECT_TRUE(Read({"-h"})->help);
  EXPECT_THAT(Read({"--what", "chmod"}).error().message(), HasSubstr("unknown flag --what"));
}

}  // namespace
}  // namespace penstock::hook
