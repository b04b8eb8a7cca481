#include "app/penstock/common/introspect.h"

#include <algorithm>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/core/strings.h"

namespace penstock::app {

std::vector<const CLI::App*> VerbsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); });
}

std::string HelpOf(const CLI::App& app, std::string prefix) {
  prefix += (prefix.empty() ? "" : " ") + app.get_name();
  return app.get_formatter()->make_help(&app, std::move(prefix), CLI::AppFormatMode::Normal);
}

namespace {

/// The options of a verb, of its subcommands, and of the program, which every verb accepts.
std::vector<const CLI::Option*> OptionsOf(const CLI::App& verb, const CLI::App& app) {
  const auto of = [](const CLI::App& one) {
    return one.get_options([](const CLI::Option* option) { return option->nonpositional(); });
  };
  std::vector<const CLI::Option*> options = of(verb);
  if (&verb == &app) return options;
  const auto add = [&options](const std::vector<const CLI::Option*>& others) {
    for (const CLI::Option* option : others)
      if (std::none_of(options.begin(), options.end(), [&](const CLI::Option* own) {
            return own->get_name() == option->get_name();
          }))
        options.push_back(option);
  };
  for (const CLI::App* below : VerbsOf(verb)) add(of(*below));
  add(of(app));
  return options;
}

std::vector<std::string> FlagsOf(const CLI::App& verb, const CLI::App& app, bool with_value_only) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : OptionsOf(verb, app)) {
    if (with_value_only && option->get_items_expected_max() == 0) continue;
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

/// The words that can follow a verb: its subcommands, or the values of a positional argument.
std::vector<std::string> WordsOf(const CLI::App& verb) {
  std::vector<std::string> words;
  for (const CLI::App* below : VerbsOf(verb)) words.push_back(below->get_name());
  if (verb.get_name() == "completion") words = {"bash", "zsh", "fish"};
  return words;
}

/// The words that can follow later.
std::vector<std::string> LaterWordsOf(const CLI::App& verb) {
  if (verb.get_name() == "assign") return {"kubelet", "local", "none", "default"};
  return {};
}

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// Returns "PATH" for "PATH:FILE".
std::string TypeOf(const CLI::Option& option) {
  return base::Split(option.get_type_name(), ':').front();
}

bool TakesFile(const CLI::Option& option) {
  return TypeOf(option) == "PATH" || TypeOf(option) == "FILE";
}

/// The values of an option with a short list of choices: "a" and "b" for "TYPE:{a,b}", CLI11's
/// notation.
std::vector<std::string> ChoicesOf(const CLI::Option& option) {
  if (option.get_name() == "--cluster" && TakesValue(option)) return {"auto", "on", "off"};
  const std::string type = option.get_type_name();
  const auto begin = type.find(":{");
  if (begin == std::string::npos || !type.ends_with('}')) return {};
  return base::Split(std::string_view(type).substr(begin + 2, type.size() - begin - 3), ',');
}

/// The verbs whose positional arguments are files.
bool TakesFiles(const CLI::App& verb) {
  return verb.get_name() == "run" || verb.get_name() == "config";
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

/// Quotes the text in single quotes for a shell.
std::string Quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4)
    text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

/// The completion of an option's value for one verb: words, or the shell's default. The preceding
/// word is in $before.
std::string BashValues(const CLI::App& verb, const CLI::App& app) {
  const auto of_all = OptionsOf(app, app);
  std::string text;
  for (const CLI::Option* option : OptionsOf(verb, app)) {
    if (!TakesValue(*option) || std::find(of_all.begin(), of_all.end(), option) != of_all.end())
      continue;
    std::vector<std::string> names;
    for (const std::string& name : option->get_lnames())
      names.push_back(verb.get_name() + ":--" + name);
    if (names.empty()) continue;
    const auto choices = ChoicesOf(*option);
    text += "    " + base::Join(names, "|") + ") ";
    if (!choices.empty())
      text += "COMPREPLY=($(compgen -W " + Quoted(base::Join(choices, " ")) + " -- \"$word\")); ";
    text += "return ;;\n";
  }
  return text;
}

std::string BashCompletion(const CLI::App& app) {
  std::vector<std::string> verbs = WordsOf(app);
  std::string text =
      "# bash completion for penstock: source <(penstock completion bash)\n_penstock() {\n";
  text +=
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb= words= i\n";
  text += "  for ((i = 1; i < COMP_CWORD; i++)); do\n    case ${COMP_WORDS[i]} in\n";
  text += "      --) return ;;\n      " + base::Join(verbs, "|") +
          ") verb=${COMP_WORDS[i]}; break ;;\n    esac\n  done\n";
  text += "  case $verb:$before in\n";
  for (const CLI::App* verb : VerbsOf(app)) text += BashValues(*verb, app);
  text += "  esac\n";
  text +=
      "  case $before in\n    -o|--output) COMPREPLY=($(compgen -W 'table wide json' -- "
      "\"$word\")); return ;;\n";
  text +=
      "    " + base::Join(FlagsOf(app, app, true), "|") + ") return ;;\n  esac\n  case $verb in\n";
  for (const CLI::App* verb : VerbsOf(app)) {
    auto words = FlagsOf(*verb, app, false);
    for (const auto& more : {WordsOf(*verb), LaterWordsOf(*verb)})
      words.insert(words.end(), more.begin(), more.end());
    text += "    " + verb->get_name() + ") words=" + Quoted(base::Join(words, " ")) + " ;;\n";
  }
  auto first = verbs;
  for (const std::string& flag : FlagsOf(app, app, false)) first.push_back(flag);
  text += "    *) words=" + Quoted(base::Join(first, " ")) + " ;;\n  esac\n";
  return text +
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\ncomplete -o default -F _penstock "
         "penstock\n";
}

/// The part of an _arguments specification that describes an option's value.
std::string ZshValue(const CLI::Option& option) {
  if (!TakesValue(option)) return "";
  const auto choices = ChoicesOf(option);
  const std::string action = !choices.empty()    ? "(" + base::Join(choices, " ") + ")"
                             : TakesFile(option) ? "_files"
                                                 : " ";
  return ":" + TypeOf(option) + ":" + action;
}

std::string ZshCompletion(const CLI::App& app) {
  std::string text =
      "#compdef penstock\n# zsh completion for penstock: penstock completion zsh > "
      "\"${fpath[1]}/_penstock\"\n_penstock() {\n  local -a "
      "verbs=(\n";
  for (const CLI::App* verb : VerbsOf(app))
    text += "    " + Quoted(verb->get_name() + ":" + FirstLine(verb->get_description())) + "\n";
  text += "  )\n  local verb=${words[(r)" + base::Join(WordsOf(app), "|") + "]}\n  case $verb in\n";
  for (const CLI::App* verb : VerbsOf(app)) {
    text += "    " + verb->get_name() + ")\n      _arguments";
    for (const CLI::Option* option : OptionsOf(*verb, app)) {
      std::string help = FirstLine(option->get_description());
      std::replace_if(
          help.begin(), help.end(), [](char c) { return c == '[' || c == ']' || c == ':'; }, ' ');
      std::vector<std::string> names;
      for (const std::string& name : option->get_snames()) names.push_back("-" + name);
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
      for (const std::string& name : names)
        text += " \\\n        " + Quoted(name + "[" + help + "]" + ZshValue(*option));
    }
    const auto words = WordsOf(*verb);
    text += " \\\n        '1:verb:'";
    if (!words.empty()) text += " \\\n        " + Quoted("2:word:(" + base::Join(words, " ") + ")");
    if (const auto later = LaterWordsOf(*verb); !later.empty())
      text += " \\\n        " + Quoted("*:word:(" + base::Join(later, " ") + ")");
    text += TakesFiles(*verb) ? " \\\n        '*:file:_files' ;;\n" : " ;;\n";
  }
  return text + "    *) _describe verb verbs ;;\n  esac\n}\n_penstock \"$@\"\n";
}

std::string FishCompletion(const CLI::App& app) {
  std::string text =
      "# fish completion for penstock: penstock completion fish > "
      "~/.config/fish/completions/penstock.fish\n";
  text += "complete -c penstock -f\n";
  const auto add = [&text](const std::string& when, const CLI::Option* option) {
    std::string names;
    for (const std::string& name : option->get_snames()) names += " -s " + name;
    for (const std::string& name : option->get_lnames()) names += " -l " + name;
    const auto choices = ChoicesOf(*option);
    std::string value = !TakesValue(*option) ? "" : TakesFile(*option) ? " -r -F" : " -x";
    if (!choices.empty()) value += " -a " + Quoted(base::Join(choices, " "));
    text += "complete -c penstock" + when + names + value + " -d " +
            Quoted(FirstLine(option->get_description())) + "\n";
  };
  for (const CLI::Option* option : OptionsOf(app, app)) add("", option);
  const std::string no_verb =
      Quoted("not __fish_seen_subcommand_from " + base::Join(WordsOf(app), " "));
  for (const CLI::App* verb : VerbsOf(app)) {
    text += "complete -c penstock -n " + no_verb + " -a " + verb->get_name() + " -d " +
            Quoted(FirstLine(verb->get_description())) + "\n";
    const std::string when = " -n '__fish_seen_subcommand_from " + verb->get_name() + "'";
    const auto of_all = OptionsOf(app, app);
    for (const CLI::Option* option : OptionsOf(*verb, app))
      if (option->get_name() != "--help" &&
          std::find(of_all.begin(), of_all.end(), option) == of_all.end())
        add(when, option);
    for (const auto& words : {WordsOf(*verb), LaterWordsOf(*verb)})
      for (const std::string& word : words)
        text += "complete -c penstock" + when + " -a " + word + "\n";
    if (TakesFiles(*verb)) text += "complete -c penstock" + when + " -F\n";
  }
  return text;
}

const CLI::App* VerbIn(const CLI::App& app, const std::vector<std::string>& words) {
  for (const CLI::App* verb : VerbsOf(app))
    if (std::find(words.begin(), words.end() - 1, verb->get_name()) != words.end() - 1) return verb;
  return nullptr;
}

/// Returns the option whose value the last word is; null where it is none.
const CLI::Option* ValueOf(const CLI::App& verb, const CLI::App& app,
                           const std::vector<std::string>& words) {
  if (words.size() < 2) return nullptr;
  for (const CLI::Option* option : OptionsOf(verb, app))
    if (option->get_items_expected_max() > 0 && option->check_name(words[words.size() - 2]))
      return option;
  return nullptr;
}

constexpr char kNoFiles[] = ":4\n", kFiles[] = ":0\n";

void AppendHelp(const CLI::App& app, const std::string& name, const std::string& prefix,
                std::string& page) {
  page += "\n## " + name + "\n\n```\n" + HelpOf(app, prefix) + "```\n";
  for (const CLI::App* verb : VerbsOf(app))
    AppendHelp(*verb, name + " " + verb->get_name(), name, page);
}

}  // namespace

std::string Completion(const CLI::App& app, const std::string& shell) {
  if (shell == "bash") return BashCompletion(app);
  if (shell == "zsh") return ZshCompletion(app);
  return shell == "fish" ? FishCompletion(app) : "";
}

std::string CompleteForKubectl(const CLI::App& app, const std::vector<std::string>& words,
                               const std::function<std::vector<std::string>()>& nodes) {
  if (words.empty()) return kNoFiles;
  const std::string& begun = words.back();
  std::string text;
  const auto offer = [&](const std::string& word, const std::string& meaning) {
    if (word.starts_with(begun))
      text += word + (meaning.empty() ? "" : "\t" + FirstLine(meaning)) + "\n";
  };
  const CLI::App* found = VerbIn(app, words);
  const CLI::App& verb = found == nullptr ? app : *found;
  if (const CLI::Option* option = ValueOf(verb, app, words)) {
    for (const std::string& choice : ChoicesOf(*option)) offer(choice, "");
    if (option->get_name() == "--node")
      for (const std::string& node : nodes()) offer(node, "");
    return text + (TakesFile(*option) ? kFiles : kNoFiles);
  }
  if (begun.starts_with("-")) {
    for (const CLI::Option* option : OptionsOf(verb, app))
      for (const std::string& name : option->get_lnames())
        offer("--" + name, option->get_description());
  } else if (found == nullptr) {
    for (const CLI::App* one : VerbsOf(app)) offer(one->get_name(), one->get_description());
  } else if (!verb.get_options([](const CLI::Option* option) {
                    return option->get_positional() && option->get_name() == "NODE";
                  })
                  .empty()) {
    for (const std::string& node : nodes()) offer(node, "");
  }
  return text + kNoFiles;
}

std::string Markdown(const CLI::App& app) {
  std::string page =
      "# The command line\n\nGenerated by `penstock help --markdown`; a test compares it with the "
      "program. The options of the program itself are accepted before and after\nevery verb.\n";
  AppendHelp(app, app.get_name(), "", page);
  return page;
}

}  // namespace penstock::app
