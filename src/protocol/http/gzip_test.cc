#include "protocol/http/gzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace penstock::protocol::http {
namespace {

std::string Unpack(const std::string& packed, std::size_t room) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string text(room + 1, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

TEST(Gzip, LosesNothing) {
  std::string noise;
  for (unsigned i = 0, x = 1; i < 300'000; ++i)
    noise += static_cast<char>((x = x * 1664525 + 1013904223) >> 24);  // grows when compressed
  for (const std::string& text :
       {std::string(), std::string("x"), std::string(1u << 20, 'a'), noise}) {
    const auto packed = Gzip(text);
    ASSERT_TRUE(packed.ok());
    EXPECT_EQ(Unpack(*packed, text.size()), text);
  }
}

TEST(GzipCache, CompressesAPageOnceAndForgetsItWithIt) {
  GzipCache cache;
  auto page = std::make_shared<const std::string>(5000, 'a');
  const auto packed = cache.Get(page);
  EXPECT_EQ(cache.Get(page), packed);
  EXPECT_NE(cache.Get(std::make_shared<const std::string>(*page)), packed)
      << "a different page object with the same text";
  std::weak_ptr<const std::string> kept = page;
  page.reset();
  EXPECT_TRUE(kept.expired()) << "the cache does not keep pages alive";
}

}  // namespace
}  // namespace penstock::protocol::http
