#include "api/listen.h"

#include <gtest/gtest.h>

namespace penstock::api {
namespace {

TEST(Listen, TakesSocketsOfTheServiceManagerByNameOrAll) {
  EXPECT_EQ(ParseListen("systemd:")->systemd, "");
  EXPECT_EQ(ParseListen("systemd:penstock-agent.socket")->systemd, "penstock-agent.socket");
  EXPECT_EQ(ParseListen("127.0.0.1:9400")->systemd, std::nullopt);
  for (const std::string bad : {"systemd:a:b", "systemd:a b", "systemd:\x01"})
    EXPECT_FALSE(ParseListen(bad).ok()) << bad;
  EXPECT_FALSE(ParseListen("systemd:" + std::string(256, 'x')).ok());
}

}  // namespace
}  // namespace penstock::api
