#include "app/command/parse.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <thread>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/strings.h"

namespace penstock::app::command {

namespace {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

constexpr std::string_view kJsonPathPrefix = "jsonpath=";

std::string DidYouMean(const std::string& word, const std::vector<std::string>& candidates) {
  const auto near = base::Nearest(word, candidates);
  return near ? "; did you mean \"" + *near + "\"?" : "";
}

std::string WrongChoice(const Option& option, const std::string& value) {
  const auto same = [&](const std::string& choice) {
    return option.any_case ? base::ToLower(choice) == base::ToLower(value) : choice == value;
  };
  if (std::any_of(option.choices.begin(), option.choices.end(), same)) return "";
  return "\"" + value + "\" is not one of " + base::Join(option.choices, ", ") +
         DidYouMean(value, option.choices);
}

/// CLI11's form of a program, for one parsing.
class Line {
 public:
  Line(const Verb& program, const std::vector<std::string>& words)
      : program_(program), app_("", program.name) {
    app_.add_flag("-v,--version", parsed_.version);
    AddVerb(app_, program, words);
    bool formats = false;
    ForEachVerb(program, [&formats](const Way& way) { formats |= !way.back()->formats.empty(); });
    if (!formats) return;
    app_.add_option("-o,--output", format_)->take_last();
    app_.add_flag("--no-headers", no_headers_);
    app_.add_flag("-w,--watch", parsed_.output.watch);
  }

  Result<Parsed> Parse(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());  // in the order that CLI11 expects
    std::string problem;
    try {
      app_.parse(std::move(words));
    } catch (const CLI::CallForHelp&) { parsed_.help = true; } catch (const CLI::ExtrasError&) {
      problem = UnknownWords();
    } catch (const CLI::ParseError& error) { problem = Reworded(error); }
    parsed_.way = WayOf(app_);
    for (const auto& [option, given] : given_) *given = option->count() > 0;
    if (problem.empty() && !parsed_.help) problem = TakeOutput();
    if (problem.empty()) return std::move(parsed_);
    return Error(Code::kInvalidArgument, problem + "\nSee " + NameOf(parsed_.way) + " --help");
  }

 private:
  /// A verb that no word names gets no options: to make those of all verbs took a fifth of the
  /// processor time in which a command starts.
  void AddVerb(CLI::App& app, const Verb& verb, const std::vector<std::string>& words) {
    app.set_help_flag("-h,--help", "");
    app.require_subcommand(0, 1);
    AddOptions(app, verb.options);
    for (const Verb& below : verb.verbs) {
      CLI::App* added = app.add_subcommand(below.name, "");
      added->fallthrough();
      if (std::ranges::find(words, below.name) != words.end()) AddVerb(*added, below, words);
    }
  }

  void AddOptions(CLI::App& app, const std::vector<Option>& options) {
    std::map<std::string, CLI::Option*> by_name;
    for (const Option& option : options) {
      CLI::Option* added = Add(app, option);
      added->type_name(option.value);
      for (const std::string& name : NamesOf(option)) by_name[name] = added;
      if (option.value_optional) added->expected(0, 1);
      if (option.required) added->required();
      if (!option.environment.empty()) added->envname(option.environment);
      if (!option.choices.empty())
        added->check([&option](const std::string& value) { return WrongChoice(option, value); });
      if (option.check) added->check(option.check);
      for (const std::string& other : option.excludes) added->excludes(by_name.at(other));
      for (const std::string& other : option.needs) added->needs(by_name.at(other));
      if (option.given != nullptr) given_.emplace_back(added, option.given);
    }
  }

  static CLI::Option* Add(CLI::App& app, const Option& option) {
    if (const auto* flag = std::get_if<bool*>(&option.target))
      return app.add_flag(option.names, **flag);
    if (const auto* text = std::get_if<std::string*>(&option.target))
      return app.add_option(option.names, **text)->take_last();
    if (const auto* number = std::get_if<std::int64_t*>(&option.target))
      return app.add_option(option.names, **number)->take_last();
    if (const auto* list = std::get_if<std::vector<std::string>*>(&option.target)) {
      CLI::Option* added =
          app.add_option(option.names, **list)->allow_extra_args(option.is_argument());
      if (!option.is_argument()) added->expected(1)->multi_option_policy(kTakeAll);
      return option.separated ? added->delimiter(',') : added;
    }
    return app
        .add_option_function<std::string>(
            option.names, std::get<std::function<void(const std::string&)>>(option.target))
        ->take_last();
  }

  Way WayOf(const CLI::App& app) const {
    std::vector<std::string> words;
    for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
      at = at->get_subcommands().front();
      words.push_back(at->get_name());
    }
    return Follow(program_, words);
  }

  std::string Named(const std::string& message) const {
    return NameOf(WayOf(app_)) + ": " + message;
  }

  std::string UnknownWords() const {
    const Way way = WayOf(app_);
    std::vector<std::string> options, verbs, lines;
    for (const Option& option : ShownOptions(way))
      for (const std::string& name : NamesOf(option)) options.push_back(name);
    for (const Option& option : program_.options)
      for (const std::string& name : NamesOf(option)) options.push_back(name);
    for (const Verb& verb : way.back()->verbs)
      if (!verb.hidden) verbs.push_back(verb.name);
    for (const std::string& word : app_.remaining(true)) {
      const std::string name = word.substr(0, word.find('='));
      if (word.starts_with("-")) {
        lines.push_back(Named("unknown option \"" + name + "\"" +
                              (name.size() > 2 ? DidYouMean(name, options) : "")));
      } else if (verbs.empty()) {
        lines.push_back(Named("unexpected argument \"" + word + "\""));
      } else {
        const std::string near = DidYouMean(word, verbs);
        lines.push_back(Named("there is no verb \"" + word + "\"" +
                              (near.empty() ? "; there are " + base::Join(verbs, ", ") : near)));
        break;
      }
    }
    return base::Join(lines, "\n");
  }

  /// CLI11's messages in words that say what to do.
  std::string Reworded(const CLI::ParseError& error) const {
    const std::string what = error.what();
    const std::string name = what.substr(0, what.find_first_of(": "));
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
      return Named(name + " needs a value");
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
      return Named(name + " is missing");
    if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr)
      return Named(name + " cannot be combined with " + what.substr(what.rfind(' ') + 1));
    if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
      const std::string given = what.substr(what.find(": ") + 2);  // "--gpus = many"
      return Named(given.substr(0, given.find(' ')) + ": \"" + given.substr(given.find("= ") + 2) +
                   "\" is not a whole number");
    }
    return Named(what);
  }

  std::string TakeOutput() {
    const Verb& verb = *parsed_.way.back();
    Output& output = parsed_.output;
    output.headers = !no_headers_;
    output.names = verb.names;
    output.format = verb.formats.empty() ? "" : verb.formats.front();
    if (output.watch && !verb.watch) return Named("unknown option \"--watch\"");
    if (format_.empty()) return "";
    if (format_.front() == '=') format_.erase(0, 1);  // -o=json
    if (verb.formats.empty()) return Named("unknown option \"-o\"");
    if (format_.starts_with(kJsonPathPrefix)) {
      output.path = format_.substr(kJsonPathPrefix.size());
      if (const Status valid = CheckJsonPath(output.path); !valid.ok())
        return Named("-o jsonpath: " + valid.error().message());
    }
    output.format = format_.substr(0, format_.find('='));
    const bool known =
        std::any_of(verb.formats.begin(), verb.formats.end(), [&](const std::string& format) {
          return format == format_ || (format.starts_with(kJsonPathPrefix) && !output.path.empty());
        });
    if (known) return "";
    return Named("-o: \"" + format_ + "\" is not one of " + base::Join(verb.formats, ", ") +
                 DidYouMean(format_, verb.formats));
  }

  static constexpr CLI::MultiOptionPolicy kTakeAll = CLI::MultiOptionPolicy::TakeAll;

  const Verb& program_;
  CLI::App app_;
  Parsed parsed_;
  std::string format_;
  bool no_headers_ = false;
  std::vector<std::pair<const CLI::Option*, bool*>> given_;
};

/// Returns whether the option's value is the next word.
bool TakesNextWord(const Way& way, const std::string& word) {
  const bool is_long = word.starts_with("--");
  if (word.find('=') != std::string::npos || (!is_long && word.size() > 2)) return false;
  if (word == "-o" || word == "--output") return true;
  for (const Verb* verb : way)
    for (const Option& option : verb->options)
      for (const std::string& name : NamesOf(option))
        if (name == word) return !option.is_flag() && !option.value_optional;
  return false;
}

/// Removes the words of a command, which CLI11 must not parse: those after "--", or from the first
/// word that is no option.
std::vector<std::string> CutCommand(const Verb& program, std::vector<std::string>& words) {
  Way way{&program};
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word.size() > 1 && word.front() == '-' && word != "--") {
      at += TakesNextWord(way, word) ? 1 : 0;
      continue;
    }
    if (way.back()->command != nullptr) {
      const auto cut = words.begin() + static_cast<std::ptrdiff_t>(at);
      std::vector<std::string> command(cut + (word == "--" ? 1 : 0), words.end());
      words.erase(cut, words.end());
      return command;
    }
    const Way next = Follow(*way.back(), {word});
    if (next.size() < 2) return {};
    way.push_back(next.back());
  }
  return {};
}

int Fail(const Way& way, const Error& error, int status) {
  std::cerr << NameOf(way) << ": " << error.message() << "\n";
  return status;
}

Result<std::string> TextOf(const Output& output, const Shown& shown) {
  if (output.json() && !shown.text.empty()) return Format(output, shown.text);
  return shown.text.empty() || shown.text.ends_with('\n') ? shown.text : shown.text + "\n";
}

/// Shows the output again whenever it changes. A table has ages, which change all the time: there
/// its JSON counts.
class Watcher {
 public:
  Watcher(const Way& way, Output& output) : way_(way), output_(output), wanted_(output) {}

  int Run() {
    for (bool first = true;; first = false) {
      if (!first) std::this_thread::sleep_for(way_.back()->watch_interval);
      const auto answer = Ask();
      if (!answer.ok() && first) return Fail(way_, answer.error(), kFailed);
      if (!answer.ok()) {
        Report(answer.error());
        continue;
      }
      problem_.clear();
      const auto text = Changed(*answer);
      if (!text.ok() && first) return Fail(way_, text.error(), kFailed);
      if (text.ok() && *text && !Print(**text, first)) return kFailed;
    }
  }

 private:
  /// The verb's output as the user wants it; its JSON where that shows whether a table changed.
  Result<Shown> Ask() {
    if (!redraw_ && !wanted_.json()) output_.format = "json";
    auto answer = way_.back()->show();
    output_ = wanted_;
    return answer;
  }

  void Report(const Error& error) {
    if (std::exchange(problem_, error.message()) != problem_) (void)Fail(way_, error, kFailed);
  }

  /// Returns the text to show; nothing where it would be the same again.
  Result<std::optional<std::string>> Changed(const Shown& answer) {
    if (redraw_) return std::optional(*TextOf(wanted_, answer));
    const bool selects = wanted_.format == "jsonpath" || wanted_.format == "name";
    std::string text;
    if (wanted_.json()) { ASSIGN(text, TextOf(wanted_, answer)); }
    std::string seen = selects ? text : WithoutGeneration(answer.text);
    if (seen == seen_) return std::optional<std::string>();
    if (!wanted_.json()) {
      ASSIGN(const Shown table, way_.back()->show());
      ASSIGN(text, TextOf(wanted_, table));
    }
    seen_ = std::move(seen);
    return std::optional(std::move(text));
  }

  bool Print(const std::string& text, bool first) const {
    if (redraw_)
      std::cout << "\x1b[H\x1b[J";
    else if (!first && !wanted_.json())
      std::cout << "\n";
    return static_cast<bool>(std::cout << text << std::flush);
  }

  const Way& way_;
  Output& output_;
  const Output wanted_;
  const bool redraw_ = ::isatty(STDOUT_FILENO) != 0 && !wanted_.json();
  std::string seen_, problem_;
};

int Show(const Way& way, const Output& output) {
  const auto shown = way.back()->show();
  if (!shown.ok()) return Fail(way, shown.error(), kFailed);
  const auto text = TextOf(output, *shown);
  if (!text.ok()) return Fail(way, text.error(), kFailed);
  std::cout << *text;
  return std::cout.flush() ? shown->status : kFailed;
}

}  // namespace

Result<Parsed> Parse(const Verb& program, std::vector<std::string> words) {
  std::vector<std::string> command = CutCommand(program, words);
  Line line(program, words);
  ASSIGN(Parsed parsed, line.Parse(std::move(words)));
  if (parsed.way.back()->command != nullptr) *parsed.way.back()->command = std::move(command);
  return parsed;
}

int Run(const Verb& program, std::vector<std::string> words, Output& output) {
  const auto parsed = Parse(program, std::move(words));
  if (!parsed.ok()) {
    std::cerr << parsed.error().message() << "\n";
    return kUsageError;
  }
  const Way& way = parsed->way;
  const Verb& verb = *way.back();
  if (parsed->version) {
    std::cout << (program.version.empty() ? program.name + " " PENSTOCK_VERSION : program.version)
              << "\n";
    return kDone;
  }
  if (parsed->help) {
    std::cout << HelpOf(way, HelpColumns(STDOUT_FILENO));
    return kDone;
  }
  if (!verb.show && !verb.run) {
    std::cerr << HelpOf(way, HelpColumns(STDERR_FILENO));
    return kUsageError;
  }
  output = parsed->output;
  if (verb.check)
    if (const Status valid = verb.check(); !valid.ok())
      return Fail(way, valid.error(), kUsageError);
  if (verb.run) return verb.run();
  return output.watch ? Watcher(way, output).Run() : Show(way, output);
}

}  // namespace penstock::app::command
