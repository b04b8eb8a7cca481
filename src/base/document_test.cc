#include "base/core/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/yaml.h"

namespace penstock::base {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const Result<Value>& result) {
  return result.ok() ? "" : result.error().message();
}

TEST(Document, TypesPlainScalarsByTheCoreSchemaAndKeepsQuotedOnesAsText) {
  auto doc =
      ParseYaml("a: 12\nb: \"12\"\nc: true\nd: 1.5\ne: ~\nf: 0x1f\ng: 10m\nh: -3\ni: yes\n", "f");
  ASSERT_TRUE(doc.ok()) << ErrorOf(doc);
  EXPECT_EQ(doc->Find("a")->integer, 12);
  EXPECT_EQ(doc->Find("b")->kind, Value::Kind::kString);
  EXPECT_TRUE(doc->Find("c")->boolean);
  EXPECT_DOUBLE_EQ(doc->Find("d")->number, 1.5);
  EXPECT_EQ(doc->Find("e")->kind, Value::Kind::kNull);
  EXPECT_EQ(doc->Find("f")->integer, 31);
  EXPECT_EQ(doc->Find("g")->kind, Value::Kind::kString);
  EXPECT_EQ(doc->Find("h")->integer, -3);
  EXPECT_EQ(doc->Find("i")->kind, Value::Kind::kString);
}

TEST(Document, NamesEveryDuplicateKeyWithItsPlace) {
  const auto yaml = ParseYaml("a: 1\nb: {c: 1, c: 2}\na: 3\n", "x.yaml");
  EXPECT_THAT(ErrorOf(yaml), HasSubstr("x.yaml:2:11: the key \"c\" is given twice"));
  EXPECT_THAT(ErrorOf(yaml), HasSubstr("x.yaml:3:1: the key \"a\" is given twice"));
  EXPECT_THAT(ErrorOf(ParseJson("{\"a\": 1,\n \"a\": 2}", "x.json")),
              HasSubstr("x.json:2:2: the key \"a\" is given twice"));
}

// A ConfigMap can have 1 MiB, and each of these values would take two hundred bytes.
TEST(Document, OfManyValuesNoneIsReadAndTheErrorIsOne) {
  std::string list;
  for (int i = 0; i < 500'000; ++i) list += "1,";
  for (const std::string& text : {"a: [" + list + "1]\n", "a: {b: [" + list + "]}\n"}) {
    const auto document = ParseYaml(text, "f");
    EXPECT_THAT(ErrorOf(document),
                HasSubstr("there are more than 100000 keys and values up to here"));
    EXPECT_EQ(ErrorOf(document).find('\n'), std::string::npos);
  }
  EXPECT_THAT(ErrorOf(ParseYamlOrJson("{\"a\": [" + list + "1]}", "f")),
              HasSubstr("there are more than 100000 keys and values up to here"));
  Problems problems{"f", ReadingMode::kLenient};
  std::string aliases = "a: &a " + std::string(500'000, 'x') + "\nb: [";
  for (int i = 0; i < 60; ++i) aliases += "*a,";
  EXPECT_THAT(ErrorOf(ParseYaml(aliases + "*a]\n", problems)),
              HasSubstr("there are more than 100000 keys and values up to here"));
  std::string some = "a:\n";
  for (int i = 0; i < 40'000; ++i) some += "  - 1\n";
  EXPECT_TRUE(ParseYaml(some, "f").ok());
}

TEST(Document, NamesDuplicatesInLargeMapsToo) {
  std::string text = "{";
  for (int i = 0; i < 40; ++i) text += "\"k" + std::to_string(i) + "\": 0, ";
  ASSERT_TRUE(ParseJson(text + "\"last\": 0}", "f").ok());
  for (const char* again : {"k0", "k15", "k16", "k39"})
    EXPECT_THAT(ErrorOf(ParseJson(text + "\"" + again + "\": 0}", "f")),
                HasSubstr(std::string("the key \"") + again + "\" is given twice"));
}

TEST(Document, OfManyKeysThatAreThereTwiceTheLastCountsUnderALenientReading) {
  constexpr int kMany = 20'000;
  std::string text;
  for (int i = 0; i < 2 * kMany; ++i)
    text += "k" + std::to_string(i % kMany) + ": " + std::to_string(i) + "\n";
  Problems problems{"x.yaml", ReadingMode::kLenient};
  const auto doc = ParseYaml(text, problems);
  ASSERT_TRUE(doc.ok()) << ErrorOf(doc);
  EXPECT_EQ(doc->map->size(), kMany);
  for (const int i : {0, 15, 16, kMany - 1})
    EXPECT_EQ(doc->Find("k" + std::to_string(i))->integer, kMany + i);
  EXPECT_EQ(problems.Remarks().size(), kMany);
}

TEST(Document, RefusesWhatCouldHideMeaning) {
  EXPECT_THAT(ErrorOf(ParseYaml("a: &x 1\nb: *x\n", "f")), HasSubstr("anchors"));
  EXPECT_THAT(ErrorOf(ParseYaml("a: &x 1\nb: *x\n", "f")), HasSubstr("aliases"));
  EXPECT_THAT(ErrorOf(ParseYaml("a: !!int 3\n", "f")), HasSubstr("tags"));
  EXPECT_THAT(ErrorOf(ParseYaml("a: 1\n---\nb: 2\n", "f")), HasSubstr("more than one document"));
  EXPECT_THAT(ErrorOf(ParseYaml("a: \xff\n", "f")), HasSubstr("UTF-8"));
  EXPECT_THAT(ErrorOf(ParseYaml("a: [", "f")), HasSubstr("f:1"));
  EXPECT_THAT(ErrorOf(ParseJson("{\"a\": 1,}", "f")), HasSubstr("f:1:"));
  EXPECT_THAT(ErrorOf(ParseJson("{} x", "f")), HasSubstr("f:1:"));
}

TEST(Document, BoundsDepthAndSize) {
  EXPECT_THAT(ErrorOf(ParseYaml(std::string(100, '[') + std::string(100, ']'), "f")),
              HasSubstr("deeper than 64"));
  EXPECT_THAT(ErrorOf(ParseJson(std::string(100, '[') + std::string(100, ']'), "f")),
              HasSubstr("deeper than 64"));
  EXPECT_THAT(ErrorOf(ParseYaml(std::string(100, ' '), "f", {.bytes = 10})),
              HasSubstr("larger than"));
}

TEST(Document, MarksJsonTokens) {
  auto doc = ParseJson("{\n  \"a\": [1, \"two\"],\n  \"b\": {\"c\": null}\n}", "f");
  ASSERT_TRUE(doc.ok()) << ErrorOf(doc);
  EXPECT_EQ(doc->Find("a")->mark.line, 2);
  EXPECT_EQ(doc->Find("a")->mark.column, 8);
  EXPECT_EQ((*doc->Find("a")->list)[1].mark.column, 12);
  EXPECT_EQ(doc->Find("b")->Find("c")->mark.line, 3);
}

TEST(MapReader, ReportsEverythingAtOnceWithHints) {
  auto doc =
      ParseYaml("naem: x\ncount: many\nwait: 10\nport: 99999\nmode: fast\nowner:\n", "c.yaml");
  ASSERT_TRUE(doc.ok());
  Problems problems("c.yaml");
  MapReader reader(*doc, "", problems);
  EXPECT_FALSE(reader.String("name"));
  EXPECT_FALSE(reader.Int("count", 0, 10));
  EXPECT_FALSE(reader.Time("wait", Duration(0), std::chrono::hours(1)));
  EXPECT_FALSE(reader.Int("port", 1, 65535));
  EXPECT_FALSE(reader.OneOf("mode", {"slow", "quick"}));
  reader.Require("id");
  reader.Require("owner");
  reader.Finish();
  const std::string text = problems.ToError().message();
  EXPECT_THAT(text, HasSubstr("c.yaml:1:1: unknown key \"naem\"; did you mean \"name\"?"));
  EXPECT_THAT(text,
              HasSubstr("c.yaml:2:8: count: is a string (many) where an integer is expected"));
  EXPECT_THAT(text, HasSubstr("c.yaml:3:7: wait: \"10\" is not a duration (it has no unit)"));
  EXPECT_THAT(text, HasSubstr("c.yaml:4:7: port: is 99999, outside of 1 to 65535"));
  EXPECT_THAT(text, HasSubstr("c.yaml:5:7: mode: \"fast\" is none of slow, quick"));
  EXPECT_THAT(text, HasSubstr("id is missing"));
  EXPECT_THAT(text, HasSubstr("owner: has no value"));
}

TEST(Problems, StayShortWhateverAFileContains) {
  Problems problems("c.yaml");
  for (int line = 1; line <= 1000; ++line)
    problems.Add({.line = line, .column = 1}, "x: is " + std::string(10000, 'y'));
  const std::string text = problems.ToError().message();
  EXPECT_LT(text.size(), 60'000U);
  EXPECT_THAT(text, HasSubstr("c.yaml:100:1: x: is yyy"));
  EXPECT_THAT(text, Not(HasSubstr("c.yaml:101:1")));
  EXPECT_TRUE(text.ends_with("\nc.yaml: and 900 more problems")) << text.substr(text.size() - 99);
}

}  // namespace
}  // namespace penstock::base
