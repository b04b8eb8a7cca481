#include "protocol/http/query.h"

#include <gtest/gtest.h>

namespace penstock::protocol::http {
namespace {

TEST(Query, FindsAParameterByItsName) {
  EXPECT_EQ(QueryValue("a=1&b=2&b=3", "b"), "2");
  EXPECT_EQ(QueryValue("a=1&bb=2", "b"), std::nullopt);
  EXPECT_EQ(QueryValue("", "b"), std::nullopt);
  EXPECT_EQ(QueryValue("b", "b"), "");
}

TEST(Query, DecodesAndRefusesWhatIsMalformed) {
  EXPECT_EQ(QueryValue("id=0000%3ac1%3A00.0+x", "id"), "0000:c1:00.0 x");
  for (const char* bad : {"id=%", "id=%4", "id=a%4g", "id=%g1"})
    EXPECT_EQ(QueryValue(bad, "id"), std::nullopt) << bad;
  EXPECT_EQ(QueryValue("id=%00", "id"), std::string(1, '\0'));
}

TEST(Query, EncodesWhatItDecodes) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(QueryValue("x=" + QueryEncoded(all), "x"), all);
  EXPECT_EQ(QueryEncoded("GPU-1&a"), "GPU-1%26a");
}

}  // namespace
}  // namespace penstock::protocol::http
