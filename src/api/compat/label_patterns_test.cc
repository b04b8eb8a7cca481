#include "api/compat/label_patterns.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::api::compat {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

TEST(LabelPatterns, AreGlobsThatMatchTheSame) {
  const std::array<std::pair<const char*, std::vector<std::string>>, 18> cases = {{
      {"^app$", {"app"}},
      {"app", {"*app*"}},
      {"^app", {"app*"}},
      {"app$", {"*app"}},
      {"", {"*"}},
      {".*", {"*"}},
      {"^.+$", {"?*"}},
      {"^app\\.kubernetes\\.io/.*", {"app.kubernetes.io/*"}},
      {"^app.kubernetes.io/name$", {"app?kubernetes?io/name"}},
      {"^(app|version)$", {"app", "version"}},
      {"^app$|^team", {"app", "team*"}},
      {"^(?:a|b(c|d))x$", {"ax", "bcx", "bdx"}},
      {"(?i)^Team-.*$", {"Team-*"}},
      {"^teams?$", {"team", "teams"}},
      {"^(x-)?owner$", {"owner", "x-owner"}},
      {"^a\\-b\\/c$", {"a-b/c"}},
      {"^.*?end$", {"*end"}},
      {"(^app$)", {"app"}},
  }};
  for (const auto& [expression, globs] : cases) {
    const auto made = GlobsOf(expression);
    ASSERT_TRUE(made.ok()) << expression << ": " << made.error().message();
    EXPECT_THAT(*made, ElementsAreArray(globs)) << expression;
  }
}

TEST(LabelPatterns, SayWhatNoGlobSays) {
  const std::array<std::pair<const char*, const char*>, 16> cases = {{
      {"^team-[a-z]+$", "a character class, \"[...]\""},
      {"^a*$", "\"*\" after something other than \".\""},
      {"^a{2}$", "\"{\" after something other"},
      {"^(ab)+$", "\"+\" after something other"},
      {"*app", "\"*\" with nothing before it"},
      {"\\w+", "has \"\\w\""},
      {"a\\", "has \"\\\""},
      {"(app", "a \"(\" without its \")\""},
      {"app)", "a \")\" without its \"(\""},
      {"(?=app)", "a group that begins with \"(?\""},
      {"a$b", "a \"^\" or \"$\" in the middle"},
      {"a^", "a \"^\" or \"$\" in the middle"},
      {"a b", "a character that label keys cannot contain"},
      {"caf\xc3\xa9", "a character that label keys cannot contain"},
      {"(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)", "more than 64 ways"},
      {"((((((((((((((((((a))))))))))))))))))", "too deeply"},
  }};
  for (const auto& [expression, what] : cases) {
    const auto made = GlobsOf(expression);
    ASSERT_FALSE(made.ok()) << expression;
    EXPECT_THAT(made.error().message(), HasSubstr(what)) << expression;
    EXPECT_THAT(made.error().message(), HasSubstr("write globs in telemetry.holderLabels"))
        << expression;
  }
  EXPECT_FALSE(GlobsOf(std::string(2000, 'a')).ok());
}

}  // namespace
}  // namespace penstock::api::compat
