#include "protocol/kube/watch.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace penstock::protocol::kube {
namespace {

std::string Nested(int levels) {
  std::string text;
  for (int i = 0; i < levels; ++i) text += R"({"f:a":)";
  return text + "{}" + std::string(static_cast<std::size_t>(levels), '}');
}

std::string EventWith(const std::string& fields, const std::string& spec) {
  return R"({"type":"MODIFIED","object":{"kind":"Node","metadata":{"name":"n1","managedFields":[)"
         R"({"manager":"m","fieldsV1":)" +
         fields + R"(},{"manager":"other"}],"resourceVersion":"1"},"spec":)" + spec + "}}";
}

// A node's own credentials may write these into its Node, and the watch is of all Nodes.
TEST(DecodeEvent, ManagedFieldsAreNeverTooDeep) {
  for (const int levels : {1, 100, 130, 5000}) {
    const std::string line = EventWith(Nested(levels), R"({"taints":[]})");
    const auto without = DecodeEvent(line);
    ASSERT_TRUE(without.ok()) << levels << without.error().message();
    EXPECT_EQ(*without->object, Json({{"kind", "Node"},
                                      {"metadata", {{"name", "n1"}, {"resourceVersion", "1"}}},
                                      {"spec", {{"taints", Json::array()}}}}));
    const auto with = DecodeEvent(line, {}, ManagedFields::kKept);
    ASSERT_TRUE(with.ok()) << levels << with.error().message();
    const Json& fields = with->object->at("metadata").at("managedFields");
    ASSERT_EQ(fields.size(), 2u);
    EXPECT_EQ(fields[0]["manager"], "m");
    EXPECT_EQ(fields[0]["fieldsV1"].dump() == Nested(levels), levels <= 100);
    EXPECT_EQ(fields[1]["manager"], "other");
    EXPECT_EQ(with->object->at("spec"), Json({{"taints", Json::array()}}));
  }
}

// With a callback, nlohmann's parser takes time by the square of these: minutes.
TEST(DecodeEvent, ObjectsMayBeWide) {
  constexpr std::size_t kMany = 200'000;
  Json fields, list = Json::array();
  for (std::size_t i = 0; i < kMany; ++i) {
    fields["f:" + std::to_string(i)] = Json::object();
    list.push_back(Json::object());
  }
  const std::string line = EventWith(fields.dump(), list.dump());
  EXPECT_FALSE(DecodeEvent(line)->object->at("metadata").contains("managedFields"));
  const auto event = DecodeEvent(line, {}, ManagedFields::kKept);
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event->object->at("metadata").at("managedFields")[0]["fieldsV1"].size(), kMany);
  EXPECT_EQ(event->object->at("spec").size(), kMany);
}

TEST(DecodeEvent, AnythingElseMayBe) {
  for (const ManagedFields fields : {ManagedFields::kLeftOut, ManagedFields::kKept}) {
    EXPECT_TRUE(DecodeEvent(EventWith("{}", Nested(100)), {}, fields).ok());
    EXPECT_FALSE(DecodeEvent(EventWith("{}", Nested(130)), {}, fields).ok());
    EXPECT_FALSE(
        DecodeEvent(EventWith("{}", R"({"managedFields":)" + Nested(130) + "}"), {}, fields).ok());
  }
}

}  // namespace
}  // namespace penstock::protocol::kube
