#include "hook/runtime/run_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/document.h"
#include "base/core/testing/must.h"
#include "os/core/file.h"
#include "os/core/testing/temporary_folder.h"

namespace penstock::hook::runtime {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RunLog, LinesAreLogrus) {
  EXPECT_EQ(FormatLogLine(RuntimeLogLevel::kError, "no \"x\"", "2026-01-02T03:04:05Z", false),
            "time=\"2026-01-02T03:04:05Z\" level=error msg=\"no \\\"x\\\"\"\n");
  EXPECT_EQ(FormatLogLine(RuntimeLogLevel::kWarn, "a\\b", "2026-01-02T03:04:05Z", true),
            "{\"level\":\"warning\",\"msg\":\"a\\\\b\",\"time\":\"2026-01-02T03:04:05Z\"}\n");
}

TEST(RunLog, NothingThatAContainerSaysEndsALine) {
  const std::string hostile = "a\nb\rc\x1b[2J\x7f\xff" + std::string(1, '\0') + "\"},{";
  for (const bool json : {true, false}) {
    const std::string line = FormatLogLine(RuntimeLogLevel::kError, hostile, "t", json);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    EXPECT_THAT(line, Not(HasSubstr("\x1b")));
    if (json) {
      const auto parsed = Must(base::ParseJson(line, "log"));
      EXPECT_THAT(parsed.Find("msg")->text, HasSubstr("a\nb?c?[2J??"));
    }
  }
}

TEST(RunLog, LongMessagesAreCutBetweenCharacters) {
  const std::string line =
      FormatLogLine(RuntimeLogLevel::kError,
                    std::string(4095, 'x') + "ä" + std::string(1u << 20, 'y'), "t", true);
  EXPECT_LT(line.size(), 4300u);
  EXPECT_TRUE(base::ParseJson(line, "log").ok());
  EXPECT_THAT(line, HasSubstr("xx...\""));
}

TEST(RunLog, TheRuntimesLogGetsWhatAnEngineShowsAndTheDebugFileTheRest) {
  const os::TemporaryFolder folder;
  const std::string log_file = folder.path() + "/log.json",
                    debug_file = folder.path() + "/new/debug.log";
  {
    RunLog log({log_file, true, false});
    log.Write(RuntimeLogLevel::kError, "before");
    Config config;
    config.debug_file = debug_file;
    log.Configure(config);
    log.Write(RuntimeLogLevel::kDebug, "hidden");
    log.Write(RuntimeLogLevel::kInfo, "told");
    log.Write(RuntimeLogLevel::kWarn, "both");
  }
  const std::string shown = *os::ReadFile(log_file), reported = *os::ReadFile(debug_file);
  EXPECT_THAT(shown, HasSubstr("before"));
  EXPECT_THAT(shown, HasSubstr("both"));
  EXPECT_THAT(shown, Not(HasSubstr("told")));
  EXPECT_THAT(reported, HasSubstr("level=info msg=\"told\""));
  EXPECT_THAT(reported, HasSubstr("both"));
  EXPECT_THAT(reported, Not(HasSubstr("hidden")));
}

TEST(RunLog, AFileThatCannotBeWrittenTakesNothingFromTheOther) {
  const os::TemporaryFolder folder;
  const std::string log_file = folder.path() + "/log", debug_file = folder.path() + "/debug";
  for (const bool log_is_lost : {true, false}) {
    RunLog log({log_is_lost ? "/proc/no/such/log" : log_file, false, true});
    Config config;
    config.debug_file = log_is_lost ? debug_file : "/proc/no/such/debug";
    log.Configure(config);
    log.Write(RuntimeLogLevel::kError, "first");
    log.Write(RuntimeLogLevel::kError, "second");
    const auto kept = Must(os::ReadFile(log_is_lost ? debug_file : log_file));
    EXPECT_THAT(kept, HasSubstr("first"));
    EXPECT_THAT(kept, HasSubstr("second"));
  }
}

}  // namespace
}  // namespace penstock::hook::runtime
