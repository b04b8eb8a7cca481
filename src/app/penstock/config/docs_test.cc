// Tests the examples of the documentation that need no agent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/options.h"
#include "base/core/strings.h"
#include "base/testing/build_tree.h"
#include "os/core/file.h"

namespace penstock::app {
namespace {

/// The blocks of a page that are marked as YAML.
std::vector<std::string> YamlIn(const std::string& page) {
  std::vector<std::string> blocks;
  const std::string text = os::ReadFile(base::SourcePath("docs/") + page).value_or("");
  constexpr std::string_view kBegin = "\n```yaml\n", kEnd = "\n```";
  for (std::size_t at = 0; (at = text.find(kBegin, at)) != std::string::npos;) {
    at += kBegin.size();
    blocks.push_back(text.substr(at, text.find(kEnd, at) - at) + "\n");
  }
  return blocks;
}

TEST(Docs, EveryConfigurationOfSharingIsOne) {
  int configurations = 0;
  for (const std::string& text : YamlIn("sharing.md")) {
    if (text.find("kind: Pod\n") != std::string::npos) continue;
    const auto resolved = ResolveText({}, text, "sharing.md");
    ASSERT_TRUE(resolved.ok()) << resolved.error().message() << "\n" << text;
    EXPECT_THAT(resolved->not_yet, testing::IsEmpty()) << text;
    EXPECT_FALSE(resolved->config.sharing.rules.empty()) << text;
    ++configurations;
  }
  EXPECT_EQ(configurations, 7);
}

}  // namespace
}  // namespace penstock::app
