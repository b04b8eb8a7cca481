#include "api/compat/nvidia/mig_parted.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::api::compat {
namespace {

/// Accepts names that contain "g."; "01g." is read as "1g.".
Result<std::string> ReadName(std::string_view name) {
  if (name.find("g.") == std::string_view::npos)
    return Error(Code::kInvalidArgument, "is no profile");
  return std::string(name.starts_with("0") ? name.substr(1) : name);
}

Result<Layouts> Translate(std::string_view text) {
  return TranslateMigParted(text, "f.yaml", ReadName);
}

std::string ProblemsOf(std::string_view text) {
  const auto layouts = Translate(text);
  return layouts.ok() ? "" : layouts.error().message();
}

/// The problems of a rule in a file that is otherwise valid.
std::string ProblemsOfRule(const std::string& rule) {
  return ProblemsOf("version: v1\nmig-configs:\n  a:\n  - " + rule + "\n");
}

TEST(MigParted, ReadsAFile) {
  const auto layouts = Translate(R"(version: v1
mig-configs:
  all-disabled:
    - devices: all
      mig-enabled: false
  mixed:
    - device-filter: ["0x233010DE", "0x20B210DE:0x146410DE"]
      devices: all
      mig-enabled: true
      mig-devices:
        "2g.20gb": 1
        "1g.10gb": 2
        "3g.40gb": 0
    - device-filter: "0x20b710de"
      devices: [4,1,4]
      mig-enabled: true
      mig-devices: {}
)");
  ASSERT_TRUE(layouts.ok()) << layouts.error().message();
  EXPECT_EQ(layouts->names(), (std::vector<std::string>{"all-disabled", "mixed"}));
  EXPECT_EQ(layouts->Find("all-disabled")->rules, (std::vector<LayoutRule>{{.all_devices = true}}));
  EXPECT_EQ(
      layouts->Find("mixed")->rules,
      (std::vector<LayoutRule>{
          {.models = {{0x10de, 0x2330}, {0x10de, 0x20b2, PciModel::Subsystem{0x10de, 0x1464}}},
           .all_devices = true,
           .partitioned = true,
           .parts = {{"1g.10gb", 2}, {"2g.20gb", 1}}},
          {.models = {{0x10de, 0x20b7}}, .devices = {1, 4}, .partitioned = true}}));
  EXPECT_EQ(layouts->Find("other"), nullptr);
}

TEST(MigParted, ReadsJsonAndWhatIsEmpty) {
  EXPECT_TRUE(Translate(R"({"version": "v1", "mig-configs": {"a": [{"devices": [],
                             "mig-enabled": false, "mig-devices": {}, "device-filter": []}]}})")
                  .ok());
  EXPECT_EQ(ProblemsOf(""), "");
  EXPECT_EQ(ProblemsOf("version: v1\n"), "");
  EXPECT_EQ(ProblemsOfRule("{devices: all, mig-enabled: false, device-filter: \"\"}"), "");
  EXPECT_EQ(ProblemsOfRule("{devices: all, mig-enabled: false, mig-devices: null}"), "");
}

TEST(MigParted, WritesWhatItReads) {
  const Layouts layouts{
      {{"b",
        {{.models = {{0x10de, 0x2330}, {0x10de, 0x20b2, PciModel::Subsystem{1, 2}}},
          .devices = {0, 3},
          .partitioned = true,
          .parts = {{"1g.10gb", 2}, {"3g.40gb", 1}}}}},
       {"a", {{.all_devices = true}, {.all_devices = true, .partitioned = true}}}}};
  const std::string text = WriteMigParted(layouts);
  EXPECT_EQ(
      text,
      R"({"version":"v1","mig-configs":{"b":[{"device-filter":["0x233010DE",)"
      R"("0x20B210DE:0x00020001"],"devices":[0,3],"mig-enabled":true,)"
      R"("mig-devices":{"1g.10gb":2,"3g.40gb":1}}],"a":[{"devices":"all","mig-enabled":false},)"
      R"({"devices":"all","mig-enabled":true,"mig-devices":{}}]}})");
  const auto again = Translate(text);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(*again, layouts);
}

TEST(MigParted, ReportsAllProblemsAtOnceWithTheirPlaces) {
  EXPECT_EQ(ProblemsOf(R"(version: v2
mig-config: {}
mig-configs:
  empty: []
  none: 7
  bad:
  - 5
  - device-filter: [A100-SXM4-40GB, 0x20B010DE]
    devices: most
    mig-enabled: "true"
    mig-devices: {bogus: 2, 1g.5gb: -1, 2g.10gb: 1.5, 01g.5gb: 1}
  - devices: [0, -1, one]
    mig-enabled: true
)"),
            "f.yaml:1:10: version: is \"v2\"; this program reads \"v1\"\n"
            "f.yaml:2:1: unknown key \"mig-config\"; did you mean \"mig-configs\"?\n"
            "f.yaml:4:10: mig-configs.empty: is a list without rules; a rule has devices, "
            "mig-enabled and mig-devices\n"
            "f.yaml:5:9: mig-configs.none: is an integer, not a list of rules; a rule has devices, "
            "mig-enabled and mig-devices\n"
            "f.yaml:7:5: mig-configs.bad[0]: is an integer where a map is expected\n"
            "f.yaml:8:21: mig-configs.bad[1].device-filter[0]: \"A100-SXM4-40GB\" is no PCI id: "
            "write the ids of device and vendor, which `lspci -nn` shows as [10de:2330], as "
            "\"0x233010DE\", and those of the subsystem after a colon\n"
            "f.yaml:8:37: mig-configs.bad[1].device-filter[1]: is an integer where a string is "
            "expected; write it in quotes\n"
            "f.yaml:9:14: mig-configs.bad[1].devices: is \"most\"; it can be all, or a list of "
            "indices, as in [0, 1]\n"
            "f.yaml:10:18: mig-configs.bad[1].mig-enabled: is a string (true) where a boolean is "
            "expected\n"
            "f.yaml:11:19: mig-configs.bad[1].mig-devices.bogus: is no profile\n"
            "f.yaml:11:37: mig-configs.bad[1].mig-devices.1g.5gb: the number of parts is a number "
            "from 0\n"
            "f.yaml:11:50: mig-configs.bad[1].mig-devices.2g.10gb: the number of parts is a number "
            "from 0\n"
            "f.yaml:11:55: mig-configs.bad[1].mig-devices.01g.5gb: is the same profile as "
            "\"1g.5gb\" above\n"
            "f.yaml:12:5: mig-configs.bad[2].mig-devices: is missing although mig-enabled is true; "
            "{} means no parts\n"
            "f.yaml:12:18: mig-configs.bad[2].devices[1]: is no index of a device: indices are "
            "numbers from 0\n"
            "f.yaml:12:22: mig-configs.bad[2].devices[2]: is no index of a device: indices are "
            "numbers from 0");
}

TEST(MigParted, RefusesWhatMigPartedRefuses) {
  using ::testing::HasSubstr;
  EXPECT_THAT(ProblemsOf("mig-configs: {a: [{devices: all, mig-enabled: false}]}"),
              HasSubstr("version is missing"));
  EXPECT_THAT(ProblemsOf("version: v1\nmig-configs: {}"), HasSubstr("needs at least one layout"));
  EXPECT_THAT(ProblemsOf("version: v1\nmig-configs:\n"), HasSubstr("needs at least one layout"));
  EXPECT_THAT(ProblemsOf("version: v1\nbogus: 1\n"), HasSubstr("unknown key \"bogus\""));
  EXPECT_THAT(ProblemsOf("version: v1\nmig-configs: {a: [{devices: all, mig-enabled: false}], "
                         "a: [{devices: all, mig-enabled: false}]}"),
              HasSubstr("the key \"a\" is given twice"));
  EXPECT_THAT(ProblemsOfRule("{mig-enabled: false}"), HasSubstr("devices is missing"));
  EXPECT_THAT(ProblemsOfRule("{devices: all}"), HasSubstr("mig-enabled is missing"));
  EXPECT_THAT(ProblemsOfRule("{devices: {}, mig-enabled: false}"),
              HasSubstr("is a map; it can be"));
  EXPECT_THAT(ProblemsOfRule("{Devices: all, mig-enabled: false}"), HasSubstr("did you mean"));
  EXPECT_THAT(ProblemsOfRule("{devices: all, mig-enabled: false, mig-devices: {1g.5gb: 7}}"),
              HasSubstr("has parts although mig-enabled is false"));
  EXPECT_THAT(ProblemsOfRule("{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 0}}"),
              HasSubstr("all numbers are 0"));
  EXPECT_THAT(ProblemsOfRule("{devices: all, mig-enabled: true, mig-devices: [1g.5gb]}"),
              HasSubstr("is a list where a map of profiles"));
  EXPECT_THAT(
      ProblemsOfRule("{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 99999999999}}"),
      HasSubstr("the number of parts is a number from 0"));
  EXPECT_THAT(ProblemsOfRule("{devices: [5000000000], mig-enabled: false}"),
              HasSubstr("is no index of a device"));
  EXPECT_THAT(ProblemsOfRule("{devices: all, mig-enabled: false, device-filter: {}}"),
              HasSubstr("is a map where a string or a list is expected"));
}

TEST(MigParted, ReadsPciIds) {
  EXPECT_EQ(*ParsePciModel("0x233010DE"), (PciModel{0x10de, 0x2330}));
  EXPECT_EQ(*ParsePciModel("0x233010de:0x146410DE"),
            (PciModel{0x10de, 0x2330, PciModel::Subsystem{0x10de, 0x1464}}));
  for (const char* text : {"", "0x", "233010DE", "0x233010DEF", "0x2330 10DE", "0x-2330", "0xGG",
                           "0x233010DE:", ":0x233010DE", "0x233010DE:0x1:0x2", "10de:2330"})
    EXPECT_FALSE(ParsePciModel(text).ok()) << text;
}

TEST(MigParted, IsRecognisedByItsKey) {
  for (const char* text :
       {"version: v1\nmig-configs: {}\n", "{\"version\": \"v1\", \"mig-configs\": 1}",
        "# a\nmig-configs:\n  a: [\n", "    version: v1\n    mig-configs: {a: []}\n"})
    EXPECT_TRUE(LooksLikeMigParted(text)) << text;
  for (const char* text :
       {"", "version: v1\n", "a: {mig-configs: {}}\n", "- mig-configs\n", "a: [\n"})
    EXPECT_FALSE(LooksLikeMigParted(text)) << text;
}

}  // namespace
}  // namespace penstock::api::compat
