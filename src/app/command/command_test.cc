// Tests the parser, help and completions on a small program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/command/completion.h"
#include "app/command/parse.h"
#include "base/core/testing/must.h"

namespace penstock::app::command {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

using Words = std::vector<std::string>;

class CommandTest : public testing::Test {
 protected:
  CommandTest() {
    program_ = {
        .name = "tool",
        .summary = "Does things",
        .options = {{.names = "--run-dir", .target = &run_dir_, .value = "PATH", .help = "folder"}},
        .verbs = {
            {.name = "run",
             .summary = "Run a command",
             .options =
                 {{.names = "--gpus", .target = &gpus_, .value = "N", .help = "number"},
                  {.names = "--wait", .target = &wait_, .value = "TIME", .help = "patience"}},
             .shares = {"--run-dir"},
             .command = &command_,
             .run = [] { return 7; }},
            {.name = "list",
             .summary = "List things",
             .examples = "tool list -o json",
             .options =
                 {{.names = "THING", .target = &things_, .help = "things [all]"},
                  {.names = "--kind",
                   .target = &kind_,
                   .value = "KIND",
                   .help = "only these",
                   .choices = {"apple", "pear"}},
                  {.names = "--all", .target = &all_, .help = "everything"},
                  {.names = "--none", .target = &none_, .help = "nothing", .excludes = {"--all"}}},
             .formats = TableFormats(),
             .names = {"thing", ".things[*].name"},
             .show = [this]() -> base::Result<Shown> {
               if (output_.json()) return Shown(R"({"things": [{"name": "a"}, {"name": "b c"}]})");
               return Shown("NAME\na", kNo);
             }},
            {.name = "group",
             .summary = "Two verbs",
             .verbs = {{.name = "one", .summary = "The first", .run = [] { return 0; }},
                       {.name = "second", .summary = "The second", .run = [] { return 0; }}}},
            {.name = "old", .summary = "Deprecated", .run = [] { return 0; }, .hidden = true}}};
  }

  /// The message of a usage error, whose last line says where to read more.
  std::string Problem(const Words& words) {
    const auto parsed = Parse(program_, words);
    return parsed.ok() ? "" : parsed.error().message();
  }

  int Run(const Words& words) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int status = command::Run(program_, words, output_);
    printed_ = testing::internal::GetCapturedStdout();
    errors_ = testing::internal::GetCapturedStderr();
    return status;
  }

  Words Command(const Words& words) {
    command_.clear();
    (void)Parse(program_, words);
    return command_;
  }

  Verb program_;
  Output output_;
  std::string run_dir_, wait_, kind_;
  std::int64_t gpus_ = 1;
  bool all_ = false, none_ = false;
  Words things_, command_;
  std::string printed_, errors_;
};

TEST_F(CommandTest, OptionsOfTheProgramAreAcceptedOnBothSidesOfTheVerb) {
  for (const Words& words : {Words{"--run-dir", "/r", "list"}, Words{"list", "--run-dir=/r"}}) {
    run_dir_.clear();
    EXPECT_EQ(Problem(words), "");
    EXPECT_EQ(run_dir_, "/r");
  }
  EXPECT_EQ(Problem({"--run-dir", "/a", "list", "--run-dir", "/b"}), "");
  EXPECT_EQ(run_dir_, "/b") << "the last one counts";
}

TEST_F(CommandTest, TheCommandBeginsAfterTheMarkOrWithTheFirstWordThatIsNoOption) {
  EXPECT_THAT(Command({"run", "--gpus", "2", "--", "sh", "-c", "exit 7"}),
              ElementsAre("sh", "-c", "exit 7"));
  EXPECT_EQ(gpus_, 2);
  EXPECT_THAT(Command({"--run-dir", "/r", "run", "--wait=0", "python", "--gpus", "3"}),
              ElementsAre("python", "--gpus", "3"));
  EXPECT_THAT(Command({"run", "--", "run", "--", "[a,b]", "", "list"}),
              ElementsAre("run", "--", "[a,b]", "", "list"));
  EXPECT_THAT(Command({"run", "sh", "--", "x"}), ElementsAre("sh", "--", "x"));
}

TEST_F(CommandTest, OtherVerbsHaveNoCommand) {
  EXPECT_THAT(Command({"list", "run"}), IsEmpty());
  EXPECT_THAT(Command({"--run-dir", "run", "list"}), IsEmpty());
  EXPECT_THAT(Command({"--", "run", "x"}), IsEmpty());
  EXPECT_THAT(Command({}), IsEmpty());
  EXPECT_THAT(Command({"run"}), IsEmpty());
  EXPECT_THAT(Command({"run", "--"}), IsEmpty());
  EXPECT_THAT(Command({"run", "--gpus"}), IsEmpty());
}

TEST_F(CommandTest, AUsageErrorNamesProgramAndVerbAndWhatMayBeMeant) {
  EXPECT_EQ(Problem({"lst"}),
            "tool: there is no verb \"lst\"; did you mean \"list\"?\nSee tool --help");
  EXPECT_THAT(Problem({"nonsense"}), HasSubstr("there are run, list, group"));
  EXPECT_EQ(
      Problem({"group", "secnd"}),
      "tool group: there is no verb \"secnd\"; did you mean \"second\"?\nSee tool group --help");
  EXPECT_THAT(Problem({"list", "--knd", "x"}),
              StartsWith("tool list: unknown option \"--knd\"; did you mean \"--kind\"?"));
  EXPECT_THAT(Problem({"list", "--kind", "aple"}),
              StartsWith("tool list: --kind: \"aple\" is not one of apple, pear; did you mean "
                         "\"apple\"?"));
  EXPECT_THAT(Problem({"list", "--kind"}), StartsWith("tool list: --kind needs a value"));
  EXPECT_THAT(Problem({"run", "--gpus", "many"}),
              HasSubstr("tool run: --gpus: \"many\" is not a whole number"));
  EXPECT_THAT(Problem({"list", "--all", "--none"}), HasSubstr("cannot be combined with"));
  EXPECT_THAT(Problem({"group", "one", "more"}),
              StartsWith("tool group one: unexpected argument \"more\""));
}

TEST_F(CommandTest, FormatsAreThoseOfTheVerb) {
  EXPECT_THAT(Problem({"list", "-o", "jsn"}),
              HasSubstr("\"jsn\" is not one of table, json, yaml, name, jsonpath=TEMPLATE; did you "
                        "mean \"json\"?"));
  EXPECT_THAT(Problem({"list", "-o", "wide"}), HasSubstr("is not one of"));
  EXPECT_THAT(Problem({"-o", "json", "group", "one"}), HasSubstr("unknown option \"-o\""));
  EXPECT_THAT(Problem({"list", "-w"}), HasSubstr("unknown option \"--watch\""));
  EXPECT_THAT(Problem({"list", "-o", "jsonpath={.a"}), HasSubstr("-o jsonpath: expected \"}\""));
  for (const Words& words : {Words{"list", "-ojson"}, Words{"list", "-o=json"},
                             Words{"-o", "json", "list"}, Words{"list", "--output=json"}})
    EXPECT_EQ(Must(Parse(program_, words)).output.format, "json");
}

TEST_F(CommandTest, TheOutputIsPrintedAsTheUserWants) {
  EXPECT_EQ(Run({"list"}), kNo);
  EXPECT_EQ(printed_, "NAME\na\n");
  EXPECT_EQ(Run({"list", "-o", "json"}), kDone);
  EXPECT_THAT(printed_, StartsWith("{\n  \"things\": [\n"));
  Run({"list", "-o", "yaml"});
  EXPECT_EQ(printed_, "things:\n- name: a\n- name: \"b c\"\n");
  Run({"list", "-o", "name"});
  EXPECT_EQ(printed_, "thing/a\nthing/b c\n");
  Run({"list", "-o", "jsonpath={.things[1].name}"});
  EXPECT_EQ(printed_, "b c\n");
}

TEST_F(CommandTest, TheExitStatusIsTheVerbs) {
  EXPECT_EQ(Run({"run", "--", "x"}), 7);
  EXPECT_EQ(Run({"lst"}), kUsageError);
  EXPECT_EQ(printed_, "");
  EXPECT_EQ(Run({"group"}), kUsageError);
  EXPECT_THAT(errors_, HasSubstr("The second"));
  EXPECT_EQ(Run({"old"}), 0) << "a deprecated name works";
}

TEST_F(CommandTest, HelpIsOfTheVerbAndListsItsOptions) {
  EXPECT_EQ(Run({"list", "--help"}), kDone);
  EXPECT_THAT(printed_, AllOf(StartsWith("List things\n\nUsage: tool list [OPTIONS] [THING...]\n"),
                              HasSubstr("\nArguments:\n  THING  things [all]\n"),
                              HasSubstr("      --kind KIND"), HasSubstr("only these: apple, pear"),
                              HasSubstr("  -o, --output FORMAT"),
                              HasSubstr("\nExamples:\n  tool list -o json\n")));
  EXPECT_EQ(Run({"run", "-h"}), kDone);
  EXPECT_THAT(printed_, AllOf(HasSubstr("--run-dir PATH"), Not(HasSubstr("--output"))));
  EXPECT_EQ(Run({"group", "second", "--help"}), kDone);
  EXPECT_THAT(printed_, StartsWith("The second"));
  EXPECT_EQ(Run({"--help"}), kDone);
  EXPECT_THAT(printed_, AllOf(HasSubstr("  group  Two verbs\n"), Not(HasSubstr("Deprecated"))));
}

TEST_F(CommandTest, HelpFitsANarrowTerminal) {
  program_.verbs[1].options[1].help = std::string(30, 'x') + " " + std::string(30, 'y');
  std::string line;
  for (const char c : HelpOf(Follow(program_, {"list"}), 40) + "\n") {
    if (c != '\n') line += c;
    if (c == '\n') {
      EXPECT_LE(line.size(), 40u) << line;
      line.clear();
    }
  }
}

TEST_F(CommandTest, ShellsGetEachVerbWithItsOwnOptions) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = Completion(program_, shell);
    EXPECT_THAT(script, AllOf(HasSubstr("group"), HasSubstr("kind"), HasSubstr("apple pear")));
    EXPECT_THAT(script, Not(HasSubstr("Deprecated")));
  }
  EXPECT_EQ(Completion(program_, "tcsh"), "");
}

TEST_F(CommandTest, ManPagesAreThereForEachVerb) {
  const auto pages = ManPages(program_, 1);
  EXPECT_THAT(pages, SizeIs(6));
  EXPECT_THAT(pages.at("tool-group-one.1"),
              HasSubstr(".SH \"NAME\"\ntool\\-group\\-one \\- The first"));
  EXPECT_THAT(pages.at("tool-list.1"), HasSubstr("\\fB\\-\\-kind KIND\\fR\nonly these"));
}

TEST(Wrapping, LinesThatBeginWithADotAreNoRequestsOfRoff) {
  const Verb verb{.name = "x", .summary = "X", .details = ".so /etc/passwd\n\n  .verbatim 'y"};
  const std::string page = ManPages(verb, 1).at("x.1");
  EXPECT_THAT(page, AllOf(HasSubstr("\n\\&.so /etc/passwd"), Not(HasSubstr("\n.so"))));
}

// --- JSONPath and YAML --------------------------------------------------------

constexpr char kPods[] = R"({"items": [
  {"name": "a", "cpu": 2, "tags": ["x", "y"], "health": {"state": "healthy"}},
  {"name": "b", "cpu": 10, "tags": [], "health": {"state": "unhealthy"}},
  {"name": "c.d", "cpu": 3.5, "health": null}], "kind": "List", "a.b": {"c": true}})";

TEST(JsonPath, SelectsAsKubectlDoes) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{.kind}", "List"},
      {".kind", "List"},
      {"{$.kind}", "List"},
      {"{@.kind}", "List"},
      {"kinds: {.kind}!", "kinds: List!"},
      {"{.items[*].name}", "a b c.d"},
      {"{.items[0].name}", "a"},
      {"{.items[-1].name}", "c.d"},
      {"{.items[0,2].cpu}", "2 3.5"},
      {"{.items[1:].name}", "b c.d"},
      {"{.items[:-1].name}", "a b"},
      {"{.items[::2].name}", "a c.d"},
      {"{.items[0]['name','cpu']}", "a 2"},
      {"{['a.b'].c}", "true"},
      {"{.a\\.b.c}", "true"},
      {"{..name}", "a b c.d"},
      {"{.items[0].tags}", R"(["x","y"])"},
      {"{.items[?(@.cpu>2)].name}", "b c.d"},
      {"{.items[?(@.cpu>=3.5)].name}", "b c.d"},
      {"{.items[?(@.health.state==\"healthy\")].name}", "a"},
      {"{.items[?(@.health.state!='healthy')].name}", "b"},
      {"{.items[?(@.tags)].name}", "a b"},
      {"{.items[?(@.name<\"b\")].name}", "a"},
      {"{range .items[*]}{.name}={.cpu}{\"\\n\"}{end}", "a=2\nb=10\nc.d=3.5\n"},
      {"{range .items[*]}{range .tags[*]}{@};{end}{end}", "x;y;"},
      {"{.nothing.at.all}", ""},
      {"{.items[9].name}", ""},
      {"{.kind[0]}", ""},
  };
  for (const auto& [path, expected] : cases) {
    EXPECT_TRUE(CheckJsonPath(path).ok()) << path;
    EXPECT_EQ(Must(JsonPath(path, kPods)), expected) << path;
  }
}

TEST(JsonPath, SaysWhatIsWrongWithATemplateAndWhere) {
  for (const char* path :
       {"", "{", "{.a", "{.a[}", "{.a[0}", "{range .a}{.b}", "{end}", "{.a[?(@.b==)]}", "{.}x}{",
        "{.a[?(@.b==x)]}", "{\"a}", "{.a[?(@.b]}", "{.a[x]}", "devices", "{.a..}"})
    EXPECT_FALSE(CheckJsonPath(path).ok()) << path;
  EXPECT_THAT(CheckJsonPath("{.a[x]}").error().message(), HasSubstr("at character 5"));
  std::string deep = "{.a", deep_end;
  for (int i = 0; i < 100; ++i) {
    deep += "[?(@.a";
    deep_end += ")]";
  }
  EXPECT_THAT(CheckJsonPath(deep + deep_end + "}").error().message(), HasSubstr("too many"));
}

TEST(Yaml, IsReadBackAsTheSame) {
  EXPECT_EQ(Must(YamlOf(R"({"a": 1, "b": "yes", "c": "1.0", "d": [], "e": {}, "f": null,
                            "g": "two\nlines", "h": "x: y", "i": [[1, 2], {"j": "é"}], "k l": ""})")),
            "a: 1\nb: \"yes\"\nc: \"1.0\"\nd: []\ne: {}\nf: null\ng: \"two\\nlines\"\n"
            "h: \"x: y\"\ni:\n- - 1\n  - 2\n- j: \"\\u00e9\"\n\"k l\": \"\"\n");
  EXPECT_EQ(Must(YamlOf("3")), "3\n");
  EXPECT_FALSE(YamlOf("{").ok());
}

}  // namespace
}  // namespace penstock::app::command
