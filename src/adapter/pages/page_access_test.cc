#include "adapter/pages/page_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::adapter::pages {
namespace {

using protocol::http::Request;
using ::testing::HasSubstr;

TEST(PageAccess, IsForUsersOfThisMachineUnderItsOwnNames) {
  for (const char* host : {"localhost", "localhost:9400", "LOCALHOST:1", "127.0.0.1",
                           "127.0.0.1:9400", "127.8.9.1:2", "[::1]", "[::1]:9400", ""})
    EXPECT_FALSE(RefusePage({.host = host, .local = true})) << host;
}

TEST(PageAccess, IsRefusedUnderANameThatAnotherSiteCanHave) {
  for (const char* host : {"evil.example", "evil.example:9400", "localhost.evil.example",
                           "127.0.0.1.evil.example:9400", "evil.localhost", "10.0.0.1:9400",
                           "0.0.0.0:9400", "[::]:9400", "[::1].evil.example", "2130706433", "127.1",
                           "[::ffff:127.0.0.1]", "localhost@evil.example", ":9400", "[", "[]"}) {
    const auto refused = RefusePage({.host = host, .local = true});
    ASSERT_TRUE(refused) << host;
    EXPECT_EQ(refused->status, 403);
    EXPECT_THAT(*refused->body, HasSubstr("localhost"));
  }
}

TEST(PageAccess, IsRefusedOnTheNetworkUntilClientsProveWhoTheyAre) {
  const auto refused = RefusePage({.host = "localhost:9400"});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 403);
  EXPECT_THAT(*refused->body, HasSubstr("http.webConfigFile"));
  EXPECT_FALSE(RefusePage({.host = "gpu1.example", .identified = true}));
}

}  // namespace
}  // namespace penstock::adapter::pages
