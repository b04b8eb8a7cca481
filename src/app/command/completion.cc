#include "app/command/completion.h"

#include <algorithm>

#include "app/command/help.h"
#include "base/core/strings.h"

namespace penstock::app::command {

namespace {

/// Quotes the text in single quotes for a shell.
std::string Quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4)
    text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

/// The options that can follow a verb: those that its help shows, then the program's other ones,
/// which are accepted everywhere.
std::vector<Option> OptionsOf(const Way& way) {
  std::vector<Option> options;
  const auto add = [&options](const Option& option) {
    const bool known = std::any_of(options.begin(), options.end(), [&option](const Option& one) {
      return one.names == option.names;
    });
    if (!known && !option.hidden && !option.is_argument()) options.push_back(option);
  };
  for (const Option& option : ShownOptions(way)) add(option);
  for (const Option& option : way.front()->options) add(option);
  return options;
}

bool TakesValue(const Option& option) { return !option.value.empty(); }

bool TakesFile(const Option& option) {
  return option.value == "PATH" || option.value == "FILE" || option.value == "DIR" ||
         option.value == "FOLDER" || (option.is_argument() && option.names == "FILE");
}

/// The values to offer for an option: its choices, or the formats of -o.
std::vector<std::string> ValuesOf(const Option& option, const Verb& verb) {
  if (option.names != "-o,--output") return option.choices;
  std::vector<std::string> formats = verb.formats;
  for (std::string& format : formats)
    if (const auto equals = format.find('='); equals != std::string::npos)
      format.resize(equals + 1);
  return formats;
}

/// The words that can follow a verb besides options: verbs, and the choices of its arguments.
std::vector<std::string> WordsOf(const Verb& verb) {
  std::vector<std::string> words;
  for (const Verb& below : verb.verbs)
    if (!below.hidden) words.push_back(below.name);
  for (const Option& option : verb.options)
    if (option.is_argument())
      words.insert(words.end(), option.choices.begin(), option.choices.end());
  words.insert(words.end(), verb.words.begin(), verb.words.end());
  return words;
}

/// The arguments are files, or a command with files.
bool TakesFiles(const Verb& verb) {
  return verb.command != nullptr ||
         std::any_of(verb.options.begin(), verb.options.end(), [](const Option& option) {
           return option.is_argument() && TakesFile(option);
         });
}

std::vector<std::string> LongNames(const Option& option) {
  std::vector<std::string> names = NamesOf(option);
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("--"); });
  return names;
}

/// The words of a verb below the program: "cdi generate"; empty for the program.
std::string PathOf(const Way& way) {
  const std::string name = NameOf(way);
  const auto blank = name.find(' ');
  return way.size() == 1 ? "" : name.substr(blank + 1);
}

/// The name of a shell's function for a program.
std::string FunctionOf(const Verb& program) {
  std::string name = "_" + program.name;
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string BashCompletion(const Verb& program) {
  const std::string &called = program.name, function = FunctionOf(program);
  std::string paths, values, words;
  ForEachVerb(program, [&](const Way& way) {
    const Verb& verb = *way.back();
    const std::string path = PathOf(way);
    if (!path.empty()) paths += (paths.empty() ? "" : "|") + Quoted(path);
    std::vector<std::string> all = WordsOf(verb);
    for (const Option& option : OptionsOf(way)) {
      const auto names = LongNames(option);
      all.insert(all.end(), names.begin(), names.end());
      if (!TakesValue(option)) continue;
      std::vector<std::string> keys;
      for (const std::string& name : NamesOf(option)) keys.push_back(Quoted(path + ":" + name));
      const auto choices = ValuesOf(option, verb);
      values += "    " + base::Join(keys, "|") + ") ";
      if (!choices.empty())
        values +=
            "COMPREPLY=($(compgen -W " + Quoted(base::Join(choices, " ")) + " -- \"$word\")); ";
      values += "return ;;\n";
    }
    words += "    " + Quoted(path) + ") words=" + Quoted(base::Join(all, " ")) + " ;;\n";
  });
  return "# bash completion for " + called + ": source <(" + called + " completion bash)\n" +
         function +
         "() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb= next "
         "words= i\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n    next=${COMP_WORDS[i]}\n"
         "    [ \"$next\" = -- ] && return\n    case \"${verb:+$verb }$next\" in\n      " +
         paths + ") verb=\"${verb:+$verb }$next\" ;;\n    esac\n  done\n" +
         "  case \"$verb:$before\" in\n" + values + "  esac\n  case $verb in\n" + words +
         "  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\n"
         "complete -o default -F " +
         function + " " + called + "\n";
}

/// The part of an _arguments specification that describes an option's value.
std::string ZshValue(const Option& option, const Verb& verb) {
  if (!TakesValue(option)) return "";
  const auto choices = ValuesOf(option, verb);
  const std::string action = !choices.empty()    ? "(" + base::Join(choices, " ") + ")"
                             : TakesFile(option) ? "_files"
                                                 : " ";
  return ":" + option.value + ":" + action;
}

std::string ZshHelp(std::string help) {
  std::replace_if(
      help.begin(), help.end(), [](char c) { return c == '[' || c == ']' || c == ':'; }, ' ');
  return help;
}

/// What follows a verb: its verbs with their meanings, words, files.
std::string ZshWords(const Way& way) {
  const Verb& verb = *way.back();
  std::string text, verbs;
  // The verbs of the way are arguments of their own.
  for (std::size_t at = 1; at < way.size(); ++at)
    text += " \\\n        " + Quoted(std::to_string(at) + ":verb:");
  for (const Verb& below : verb.verbs)
    if (!below.hidden) verbs += " " + below.name + "\\:\"" + ZshHelp(below.summary) + "\"";
  if (!verbs.empty())
    text +=
        " \\\n        " + Quoted(std::to_string(way.size()) + ":verb:((" + verbs.substr(1) + "))");
  const auto words = WordsOf(verb);
  if (!words.empty() && verbs.empty())
    text += " \\\n        " + Quoted("*:word:(" + base::Join(words, " ") + ")");
  return text + (TakesFiles(verb) ? " \\\n        '*:file:_files'" : "");
}

std::string ZshCompletion(const Verb& program) {
  const std::string &called = program.name, function = FunctionOf(program);
  std::string paths, cases;
  ForEachVerb(program, [&](const Way& way) {
    const std::string path = PathOf(way);
    if (!path.empty()) paths += (paths.empty() ? "" : "|") + Quoted(path);
    cases += "    (" + Quoted(path) + ")\n      _arguments";
    for (const Option& option : OptionsOf(way))
      for (const std::string& name : NamesOf(option))
        cases += " \\\n        " +
                 Quoted(name + "[" + ZshHelp(option.help) + "]" + ZshValue(option, *way.back()));
    cases += ZshWords(way) + " ;;\n";
  });
  return "#compdef " + called + "\n# zsh completion for " + called + ": " + called +
         " completion zsh > \"${fpath[1]}/_" + called + "\"\n" + function +
         "() {\n  local verb= next i\n"
         "  for ((i = 2; i < CURRENT; i++)); do\n    next=${words[i]}\n"
         "    case \"${verb:+$verb }$next\" in\n      (" +
         paths + ") verb=\"${verb:+$verb }$next\" ;;\n    esac\n  done\n  case $verb in\n" + cases +
         "  esac\n}\n" + function + " \"$@\"\n";
}

std::string FishCompletion(const Verb& program) {
  const std::string &called = program.name, complete = "complete -c " + called;
  std::string text = "# fish completion for " + called + ": " + called + " completion fish > " +
                     "~/.config/fish/completions/" + called + ".fish\n" + complete + " -f\n";
  ForEachVerb(program, [&](const Way& way) {
    const Verb& verb = *way.back();
    std::vector<std::string> below, conditions;
    for (const Verb& one : verb.verbs)
      if (!one.hidden) below.push_back(one.name);
    for (std::size_t at = 1; at < way.size(); ++at)
      conditions.push_back("__fish_seen_subcommand_from " + way[at]->name);
    const auto when = [](const std::vector<std::string>& all) {
      return all.empty() ? "" : " -n " + Quoted(base::Join(all, "; and "));
    };
    auto without = conditions;
    if (!below.empty())
      without.push_back("not __fish_seen_subcommand_from " + base::Join(below, " "));
    for (const Verb& one : verb.verbs)
      if (!one.hidden)
        text += complete + when(without) + " -a " + one.name + " -d " + Quoted(one.summary) + "\n";
    for (const std::string& word : WordsOf(verb))
      if (std::find(below.begin(), below.end(), word) == below.end())
        text += complete + when(without) + " -a " + word + "\n";
    const bool of_program = way.size() == 1;
    for (const Option& option : of_program ? OptionsOf(way) : ShownOptions(way)) {
      if (option.is_argument()) continue;
      std::string names;
      for (const std::string& name : NamesOf(option))
        names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      const auto choices = ValuesOf(option, verb);
      std::string value = !TakesValue(option) ? "" : TakesFile(option) ? " -r -F" : " -x";
      if (!choices.empty()) value += " -a " + Quoted(base::Join(choices, " "));
      text += complete + when(conditions) + names + value + " -d " + Quoted(option.help) + "\n";
    }
    if (TakesFiles(verb)) text += complete + when(conditions) + " -F\n";
  });
  return text;
}

/// Returns the option whose value the last word is; null where it is none.
const Option* OptionBefore(const std::vector<Option>& options,
                           const std::vector<std::string>& words) {
  if (words.size() < 2) return nullptr;
  const std::string& before = words[words.size() - 2];
  const auto found = std::find_if(options.begin(), options.end(), [&before](const Option& option) {
    const auto names = NamesOf(option);
    return TakesValue(option) && std::find(names.begin(), names.end(), before) != names.end();
  });
  return found == options.end() ? nullptr : &*found;
}

constexpr char kNoFiles[] = ":4\n", kFiles[] = ":0\n";

}  // namespace

std::string Completion(const Verb& program, const std::string& shell) {
  if (shell == "bash") return BashCompletion(program);
  if (shell == "zsh") return ZshCompletion(program);
  return shell == "fish" ? FishCompletion(program) : "";
}

std::string CompleteForKubectl(const Verb& program, const std::vector<std::string>& words,
                               const std::function<std::vector<std::string>()>& nodes) {
  if (words.empty()) return kNoFiles;
  const std::string& begun = words.back();
  std::string text;
  const auto offer = [&](const std::string& word, const std::string& meaning) {
    if (word.starts_with(begun)) text += word + (meaning.empty() ? "" : "\t" + meaning) + "\n";
  };
  // Options may stand before the verb; their values are rarely names of verbs.
  std::vector<std::string> verbs(words.begin(), words.end() - 1);
  std::erase_if(verbs,
                [&program](const std::string& word) { return Follow(program, {word}).size() < 2; });
  const Way way = Follow(program, verbs);
  const Verb& verb = *way.back();
  const std::vector<Option> options = OptionsOf(way);
  if (const Option* option = OptionBefore(options, words)) {
    for (const std::string& value : ValuesOf(*option, verb)) offer(value, "");
    if (option->names == "--node")
      for (const std::string& node : nodes()) offer(node, "");
    return text + (TakesFile(*option) ? kFiles : kNoFiles);
  }
  if (begun.starts_with("-")) {
    for (const Option& option : options)
      for (const std::string& name : LongNames(option)) offer(name, option.help);
  } else if (way.size() == 1) {
    for (const Verb& one : program.verbs)
      if (!one.hidden) offer(one.name, one.summary);
  } else if (std::any_of(verb.options.begin(), verb.options.end(), [](const Option& option) {
               return option.is_argument() && option.names == "NODE";
             })) {
    for (const std::string& node : nodes()) offer(node, "");
  }
  return text + kNoFiles;
}

}  // namespace penstock::app::command
