#include "protocol/engine/text/edit.h"

#include <random>

#include <gmock/gmock.h>

#include "protocol/engine/text/line_diff.h"
#include "protocol/engine/text/toml_layout.h"

namespace penstock::protocol::engine {
namespace {

using testing::HasSubstr;

const Path kCri = {"plugins", "io.containerd.grpc.v1.cri"};

Path Cri(const Path& below) {
  Path path = kCri;
  path.insert(path.end(), below.begin(), below.end());
  return path;
}

std::string Toml(const std::string& text, const std::vector<Setting>& settings) {
  auto made = Apply(FileFormat::kToml, text, "config.toml", settings);
  return made.ok() ? *made : "error: " + made.error().message();
}

std::string Json(const std::string& text, const std::vector<Setting>& settings) {
  auto made = Apply(FileFormat::kJson, text, "daemon.json", settings);
  return made.ok() ? *made : "error: " + made.error().message();
}

constexpr char kDebian[] = R"(# of the distribution
version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni" # where they are
      conf_dir = "/etc/cni/net.d"
  # ours
  [plugins."io.containerd.internal.v1.opt"]
    path = "/var/lib/containerd/opt"
)";

TEST(TomlEdit, AKeyJoinsAnEmptyTableWithoutTouchingAnythingElse) {
  EXPECT_EQ(Toml(kDebian, {{Cri({"enable_cdi"}), Flag(true)}}), R"(# of the distribution
version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
  enable_cdi = true
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni" # where they are
      conf_dir = "/etc/cni/net.d"
  # ours
  [plugins."io.containerd.internal.v1.opt"]
    path = "/var/lib/containerd/opt"
)");
}

TEST(TomlEdit, NewTablesStandAtTheEnd) {
  EXPECT_EQ(Toml(kDebian, {{Cri({"containerd", "runtimes", "nvidia", "runtime_type"}),
                            Text("io.containerd.runc.v2")},
                           {Cri({"containerd", "runtimes", "nvidia", "options", "BinaryName"}),
                            Text("/usr/bin/x")}}),
            R"(# of the distribution
version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni" # where they are
      conf_dir = "/etc/cni/net.d"
  # ours
  [plugins."io.containerd.internal.v1.opt"]
    path = "/var/lib/containerd/opt"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/x"
)");
}

TEST(TomlEdit, AValueIsReplacedWhereItStandsAndItsCommentStays) {
  const std::string text =
      "[plugins.\"io.containerd.grpc.v1.cri\"]\r\n\tenable_cdi\t=  false  # not yet\r\n";
  EXPECT_EQ(Toml(text, {{Cri({"enable_cdi"}), Flag(true)}}),
            "[plugins.\"io.containerd.grpc.v1.cri\"]\r\n\tenable_cdi\t=  true  # not yet\r\n");
}

TEST(TomlEdit, LineEndsAreTheFilesOwnAndALastLineWithoutOneGetsIt) {
  EXPECT_EQ(Toml("a = 1\r\n[b]\r\nc = 2", {{{"b", "d"}, Flag(true)}, {{"e", "f"}, Text("g")}}),
            "a = 1\r\n[b]\r\nc = 2\r\nd = true\r\n\r\n[e]\r\nf = \"g\"\r\n");
}

TEST(TomlEdit, ATableThatOnlyDeeperOnesImplyIsAddedAsWell) {
  EXPECT_EQ(Toml("x = 1\n\n# runc\n[a.b.c]\nk = 1\n", {{{"a", "b", "on"}, Flag(true)}}),
            "x = 1\n\n# runc\n[a.b.c]\nk = 1\n\n[a.b]\non = true\n");
}

TEST(TomlEdit, KeysOfTheDocumentItselfStandBeforeTheFirstTable) {
  EXPECT_EQ(Toml("# head\n\n[a]\nb = 1\n", {{{"imports"}, Texts({"/x/*.toml"})}}),
            "# head\nimports = [\"/x/*.toml\"]\n\n[a]\nb = 1\n");
  EXPECT_EQ(Toml("version = 2\n[a]\n", {{{"imports"}, Texts({"/x"})}}),
            "version = 2\nimports = [\"/x\"]\n[a]\n");
  EXPECT_EQ(Toml("", {{{"a", "b"}, Text("c\"\n\x7f")}}), "[a]\nb = \"c\\\"\\n\\u007f\"\n");
}

TEST(TomlEdit, ATableMadeByDotsGetsAnotherDottedKey) {
  EXPECT_EQ(Toml("[plugins]\n  cri.cni.bin = \"/b\"\n[z]\n",
                 {{{"plugins", "cri", "cni", "conf"}, Text("/c")}}),
            "[plugins]\n  cri.cni.bin = \"/b\"\n  cri.cni.conf = \"/c\"\n[z]\n");
}

TEST(TomlEdit, WhatCannotBeEditedSafelyIsRefusedWithTheReason) {
  EXPECT_THAT(Toml("plugins = {cri = {a = 1}}\n", {{{"plugins", "cri", "b"}, Flag(true)}}),
              HasSubstr("config.toml: plugins is an inline table, which is not edited: write cri.b "
                        "= true into it"));
  EXPECT_THAT(Toml("a = 3\n", {{{"a", "b"}, Flag(true)}}),
              HasSubstr("config.toml: 1:5: a is an integer where a map is expected"));
  EXPECT_THAT(Toml("[a.b]\nc = 1\n", {{{"a", "b"}, Flag(true)}}),
              HasSubstr("a.b is a map where a value is expected"));
  EXPECT_THAT(Toml("[[a]]\nb = 1\n", {{{"a", "b"}, Flag(true)}}),
              HasSubstr("a is a list where a map is expected"));
  EXPECT_THAT(Toml("a = 1\na = 2\n", {{{"b"}, Flag(true)}}), HasSubstr("config.toml:2:5"));
}

TEST(TomlEdit, StringsThatLookLikeTablesMisleadNoOne) {
  const std::string text =
      "a = '''\n[b]\nc = 1\n'''''\nd = \"\"\"x\\\"\"\"\"\ne = [ # ]\n  \"]\",\n  [1],\n]\n\"f.g\" "
      "= '#'\n[ 'h' . \"\\u0069\" ] # [j]\nk = "
      "1979-05-27T07:32:00Z\n";
  EXPECT_EQ(Toml(text, {{{"h", "i", "l"}, Flag(false)}}), text + "l = false\n");
  EXPECT_EQ(Toml(text, {{{"f.g"}, Text("x")}}).size(), text.size());
}

TEST(TomlEdit, WithdrawnKeysTakeTheTablesAlongThatWereMadeForThem) {
  const std::vector<Setting> settings = {
      {Cri({"containerd", "runtimes", "nvidia", "runtime_type"}), Text("t")},
      {Cri({"containerd", "runtimes", "nvidia", "options", "BinaryName"}), Text("/x")},
      {Cri({"enable_cdi"}), Flag(true)}};
  const std::string made = Toml(kDebian, settings);
  std::vector<Path> keys, tables;
  for (const Setting& setting : settings) keys.push_back(setting.path);
  for (const Path& below : {Path{"containerd"}, Path{"containerd", "runtimes"},
                            Path{"containerd", "runtimes", "nvidia"},
                            Path{"containerd", "runtimes", "nvidia", "options"}})
    tables.push_back(Cri(below));
  const auto back = Withdraw(FileFormat::kToml, made, "config.toml", keys, tables);
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(*back, kDebian);
}

TEST(JsonEdit, MembersJoinTheirObjectsAsTheirSistersAreWritten) {
  EXPECT_EQ(
      Json(
          "{\n  \"log-driver\": \"journald\",\n  \"features\": {\n    \"buildkit\": true\n  }\n}\n",
          {{{"features", "cdi"}, Flag(true)},
           {{"runtimes", "nvidia", "path"}, Text("/x")},
           {{"runtimes", "nvidia", "args"}, Texts({})}}),
      "{\n  \"log-driver\": \"journald\",\n  \"features\": {\n    \"buildkit\": true,\n    "
      "\"cdi\": true\n  },\n"
      "  \"runtimes\": {\n    \"nvidia\": {\n      \"path\": \"/x\",\n      \"args\": []\n    }\n  "
      "}\n}\n");
  EXPECT_EQ(Json("{\"a\": 1}", {{{"features", "cdi"}, Flag(true)}}),
            "{\"a\": 1, \"features\": { \"cdi\": true }}");
  EXPECT_EQ(Json("", {{{"features", "cdi"}, Flag(true)}}),
            "{\n    \"features\": {\n        \"cdi\": true\n    }\n}\n");
  EXPECT_EQ(Json("{\r\n\t\"a\": {}\r\n}", {{{"a", "b"}, Text("c")}}),
            "{\r\n\t\"a\": {\r\n\t\t\"b\": \"c\"\r\n\t}\r\n}");
  EXPECT_EQ(Json("{\"features\": {\"cdi\": false}}\n", {{{"features", "cdi"}, Flag(true)}}),
            "{\"features\": {\"cdi\": true}}\n");
}

TEST(JsonEdit, WithdrawnMembersLeaveNoComma) {
  const auto without = [](const std::string& text, const Path& key) {
    return Withdraw(FileFormat::kJson, text, "daemon.json", {key}, {{"a"}}).value_or("error");
  };
  EXPECT_EQ(without("{\"a\": {\"b\": 1}, \"c\": \"},{\"}", {"a", "b"}), "{\"c\": \"},{\"}");
  EXPECT_EQ(without("{\"x\": [1, {\"y\": 2}], \"b\": 1}", {"b"}), "{\"x\": [1, {\"y\": 2}]}");
  EXPECT_EQ(without("{\"b\": 1}", {"b"}), "{}");
}

TEST(JsonEdit, WhatIsNoObjectIsRefused) {
  EXPECT_THAT(Json("[]", {{{"a"}, Flag(true)}}), HasSubstr("is not a JSON object"));
  EXPECT_THAT(Json("{\"features\": true}", {{{"features", "cdi"}, Flag(true)}}),
              HasSubstr("features is a boolean where a map is expected"));
  EXPECT_THAT(Json("{\"a\": 1,}", {{{"b"}, Flag(true)}}), HasSubstr("daemon.json:1:"));
}

// Properties of randomly generated documents.
class Writer {
 public:
  explicit Writer(unsigned seed) : random_(seed) {}

  int Below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

  std::string Key() {
    static const std::vector<std::string> kKeys = {"a",     "b-c", "\"io.x\"",
                                                   "'q.r'", "d_1", "\"\\u0065\""};
    return kKeys[static_cast<std::size_t>(Below(6))];
  }

  std::string Scalar() {
    static const std::vector<std::string> kValues = {"1",
                                                     "true",
                                                     "\"x # [y]\"",
                                                     "'z'",
                                                     "\"\"\"\nm\n\"\"\"",
                                                     "[1, 2]",
                                                     "[\n  \"]\", # c\n  \"b\",\n]",
                                                     "{k = 1, l.m = 2}",
                                                     "1979-05-27"};
    return kValues[static_cast<std::size_t>(Below(9))];
  }

  /// Returns a document that may be malformed (a duplicate key): the parser decides.
  std::string Document() {
    std::string text = Below(3) == 0 ? "# head\n\n" : "";
    for (int tables = Below(6); tables >= 0; --tables) {
      for (int keys = Below(4); keys > 0; --keys)
        text += std::string(static_cast<std::size_t>(Below(3)), ' ') + Key() +
                (Below(5) == 0 ? "." + Key() : "") + " = " + Scalar() +
                (Below(4) == 0 ? " # why" : "") + "\n";
      text += Below(3) == 0 ? "\n# about\n" : "";
      std::string path = Key();
      for (int depth = Below(3); depth > 0; --depth) path += "." + Key();
      text += Below(8) == 0 ? "[[" + path + "]]\n" : "[" + path + "]\n";
    }
    if (Below(2) == 0) text.pop_back();
    return text;
  }

  Setting Desired() {
    static const Path kKeys = {"a", "b-c", "io.x", "q.r", "d_1", "e", "new"};
    Setting setting{{}, Below(2) == 0 ? Flag(true) : Text("new")};
    for (int depth = 1 + Below(4); depth > 0; --depth)
      setting.path.push_back(kKeys[static_cast<std::size_t>(Below(7))]);
    return setting;
  }

 private:
  std::mt19937 random_;
};

TEST(TomlEdit, AnyDocumentKeepsAllElseAndASecondEditChangesNothing) {
  int edited = 0;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    Writer writer(seed);
    const std::string text = writer.Document();
    const auto document = Read(FileFormat::kToml, text, "x");
    if (!document.ok()) continue;
    const Setting desired = writer.Desired();
    const auto made = Apply(FileFormat::kToml, text, "x", {desired});
    if (!made.ok()) {
      ASSERT_EQ(made.error().code(), base::Code::kFailedPrecondition)
          << text << made.error().message();
      continue;
    }
    ++edited;
    const auto after = Read(FileFormat::kToml, *made, "x");
    ASSERT_TRUE(after.ok()) << *made;
    Tree wanted = ToTree(*document);
    Put(wanted, desired);
    ASSERT_TRUE(Compare(wanted, ToTree(*after)).empty()) << text << "\n---\n" << *made;
    // At most the replaced value is removed from the text.
    std::size_t removed = 0;
    for (const Hunk& hunk : Diff(Lines(text), Lines(*made)))
      removed += hunk.before_end - hunk.before;
    ASSERT_LE(removed, FindAt(*document, desired.path) != nullptr ? 4u : 1u) << text << "\n---\n"
                                                                             << *made;
    ASSERT_EQ(Apply(FileFormat::kToml, *made, "x", {desired}).value_or(""), *made);
  }
  EXPECT_GT(edited, 1000);
}

TEST(TomlEdit, WhatWasSetCanBeWithdrawnWhateverElseTheDocumentSays) {
  int withdrawn = 0;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    Writer writer(seed);
    const std::string text = writer.Document();
    const auto document = Read(FileFormat::kToml, text, "x");
    const Setting desired = writer.Desired();
    if (!document.ok() || FindAt(*document, desired.path) != nullptr) continue;
    const auto made = Apply(FileFormat::kToml, text, "x", {desired});
    if (!made.ok()) continue;
    std::vector<Path> tables;
    for (Path path = desired.path; path.pop_back(), !path.empty();)
      if (FindAt(*document, path) == nullptr) tables.push_back(path);
    const auto back = Withdraw(FileFormat::kToml, *made, "x", {desired.path}, tables);
    ASSERT_TRUE(back.ok()) << *made << back.error().message();
    ASSERT_TRUE(Compare(ToTree(*document), ToTree(*Read(FileFormat::kToml, *back, "x"))).empty())
        << *back;
    ++withdrawn;
  }
  EXPECT_GT(withdrawn, 800);
}

}  // namespace
}  // namespace penstock::protocol::engine
