#include "app/command/help.h"

#include <algorithm>

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/core/strings.h"

namespace penstock::app::command {

namespace {

constexpr std::size_t kWidest = 100, kNarrowest = 40, kWidestNames = 30;

/// Wraps a paragraph into lines after the first one's indent.
std::string Wrap(const std::string& paragraph, std::size_t indent, std::size_t columns) {
  std::string text;
  std::size_t at = indent;
  for (const std::string& word : base::Split(paragraph, ' ')) {
    if (word.empty()) continue;
    if (at > indent && at + 1 + word.size() > columns) {
      text += "\n" + std::string(indent, ' ');
      at = indent;
    } else if (at > indent) {
      text += " ";
      ++at;
    }
    text += word;
    at += word.size();
  }
  return text;
}

/// Text between blank lines, as one line; lines that begin with a blank are kept as they are.
struct Paragraph {
  std::string text;
  bool kept = false;
};

std::vector<Paragraph> ParagraphsOf(const std::string& text) {
  std::vector<Paragraph> all;
  bool begins = true;
  for (const std::string& line : base::Split(text, '\n')) {
    const bool kept = line.starts_with(' ');
    if (!line.empty() && !begins && all.back().kept == kept)
      all.back().text += (kept ? "\n" : " ") + line;
    else if (!line.empty())
      all.push_back({line, kept});
    begins = line.empty();
  }
  return all;
}

std::string WrapParagraphs(const std::string& text, std::size_t columns) {
  std::string wrapped;
  for (const Paragraph& one : ParagraphsOf(text))
    wrapped += "\n" + (one.kept ? one.text : Wrap(one.text, 0, columns)) + "\n";
  return wrapped;
}

std::string UsageOf(const Way& way) {
  const Verb& verb = *way.back();
  std::string usage = NameOf(way);
  if (!verb.verbs.empty()) usage += verb.show || verb.run ? " [VERB]" : " VERB";
  usage += " [OPTIONS]";
  if (!verb.usage.empty()) return usage + " " + verb.usage;
  for (const Option& option : verb.options)
    if (option.is_argument() && !option.hidden) {
      const bool list = std::holds_alternative<std::vector<std::string>*>(option.target);
      const std::string name = option.names + (list ? "..." : "");
      usage += option.required ? " " + name : " [" + name + "]";
    }
  return usage;
}

/// "-o, --output FORMAT"; "    --watch".
std::string LabelOf(const Option& option) {
  if (option.is_argument()) return option.names;
  std::vector<std::string> names = NamesOf(option);
  std::stable_sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() == 2 && b.size() > 2;
  });
  std::string label = (names.front().size() == 2 ? "" : "    ") + base::Join(names, ", ");
  if (option.value.empty()) return label;
  return label + (option.value_optional ? " [" + option.value + "]" : " " + option.value);
}

std::string HelpOf(const Option& option) {
  std::string help = option.help;
  if (!option.choices.empty() && help.find(option.choices.front()) == std::string::npos)
    help += std::string(help.empty() ? "" : ": ") + base::Join(option.choices, ", ");
  if (!option.environment.empty()) help += " (variable " + option.environment + ")";
  return help;
}

std::string GroupOf(const Option& option) {
  if (!option.group.empty()) return option.group;
  return option.is_argument() ? "Arguments" : "Options";
}

/// The headings in the order of their first options, "Arguments" and "Options" first.
std::vector<std::pair<std::string, std::vector<Option>>> Grouped(
    const std::vector<Option>& options) {
  std::vector<std::pair<std::string, std::vector<Option>>> groups{{"Arguments", {}},
                                                                  {"Options", {}}};
  for (const Option& option : options) {
    const std::string name = GroupOf(option);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&name](const auto& one) { return one.first == name; });
    if (group == groups.end()) group = groups.insert(groups.end(), {name, {}});
    group->second.push_back(option);
  }
  std::erase_if(groups, [](const auto& group) { return group.second.empty(); });
  return groups;
}

/// Lines of two columns; the second begins on a line of its own where there is no room.
std::string Lines(const std::vector<std::pair<std::string, std::string>>& rows,
                  std::size_t columns) {
  std::size_t width = 0;
  for (const auto& [label, help] : rows)
    if (label.size() <= kWidestNames) width = std::max(width, label.size());
  const std::size_t indent = columns < 60 ? 8 : width + 4;
  std::string text;
  for (const auto& [label, help] : rows) {
    text += "  " + label;
    if (!help.empty())
      text += label.size() + 4 > indent
                  ? "\n" + std::string(indent, ' ') + Wrap(help, indent, columns)
                  : std::string(indent - label.size() - 2, ' ') + Wrap(help, indent, columns);
    text += "\n";
  }
  return text;
}

std::string VerbLines(const Verb& verb, std::size_t columns) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Verb& below : verb.verbs)
    if (!below.hidden) rows.emplace_back(below.name, below.summary);
  return rows.empty() ? "" : "\nVerbs:\n" + Lines(rows, columns);
}

std::string IndentedExamples(const Verb& verb) {
  std::string text;
  for (const std::string& line : base::Split(verb.examples, '\n')) text += "  " + line + "\n";
  return text;
}

// --- man pages --------------------------------------------------------------

/// Escapes text for roff.
std::string Roff(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (escaped.empty() || escaped.back() == '\n')) escaped += "\\&";
    escaped += c == '\\' ? std::string("\\e") : c == '-' ? std::string("\\-") : std::string(1, c);
  }
  return escaped;
}

std::string Verbatim(const std::string& text) {
  return ".RS 4\n.nf\n" + Roff(text) + (text.ends_with('\n') ? "" : "\n") + ".fi\n.RE\n";
}

std::string Section(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), ::toupper);
  return ".SH \"" + Roff(name) + "\"\n";
}

std::string Description(const std::string& text) {
  std::string page;
  for (const Paragraph& one : ParagraphsOf(text))
    page += (page.empty() ? "" : ".PP\n") + (one.kept ? Verbatim(one.text) : Roff(one.text) + "\n");
  return page;
}

std::string ManName(const Way& way) {
  std::string name = NameOf(way);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string ManPage(const Way& way, int section) {
  const Verb& verb = *way.back();
  const std::string number = std::to_string(section);
  std::string page = ".TH \"" + base::ToLower(ManName(way)) + "\" \"" + number +
                     "\" \"\" \"Penstock " PENSTOCK_VERSION "\" \"Penstock\"\n";
  page += Section("name") + Roff(ManName(way)) + " \\- " + Roff(verb.summary) + "\n";
  page += Section("synopsis") + Roff(UsageOf(way)) + "\n";
  if (!verb.details.empty()) page += Section("description") + Description(verb.details);
  std::string below;
  for (const Verb& one : verb.verbs) {
    if (one.hidden) continue;
    Way next = way;
    next.push_back(&one);
    below +=
        ".TP\n\\fB" + Roff(ManName(next)) + "\\fR(" + number + ")\n" + Roff(one.summary) + "\n";
  }
  if (!below.empty()) page += Section("verbs") + below;
  std::vector<Option> all = ShownOptions(way);
  if (way.size() == 1 && !verb.verbs.empty())
    all.insert(all.end(), verb.options.begin(), verb.options.end());
  for (const auto& [group, options] : Grouped(all)) {
    page += Section(group);
    for (const Option& option : options)
      page += ".TP\n\\fB" + Roff(std::string(base::Trim(LabelOf(option)))) + "\\fR\n" +
              Roff(HelpOf(option)) + "\n";
  }
  if (!verb.examples.empty()) page += Section("examples") + Verbatim(verb.examples);
  if (!verb.exit_status.empty())
    page += Section("exit status") + Roff(verb.exit_status + ".") + "\n";
  if (way.size() > 1)
    page +=
        Section("see also") + Roff(ManName({way.begin(), way.end() - 1})) + "(" + number + ")\n";
  return page;
}

void Visit(const Way& way, const std::function<void(const Way&)>& function) {
  function(way);
  for (const Verb& below : way.back()->verbs) {
    if (below.hidden) continue;
    Way next = way;
    next.push_back(&below);
    Visit(next, function);
  }
}

}  // namespace

std::string NameOf(const Way& way) {
  std::vector<std::string> names;
  for (const Verb* verb : way) names.push_back(verb->name);
  return base::Join(names, " ");
}

Way Follow(const Verb& program, const std::vector<std::string>& words) {
  Way way{&program};
  for (const std::string& word : words) {
    const auto& verbs = way.back()->verbs;
    const auto found = std::find_if(verbs.begin(), verbs.end(),
                                    [&word](const Verb& verb) { return verb.name == word; });
    if (found == verbs.end()) break;
    way.push_back(&*found);
  }
  return way;
}

void ForEachVerb(const Verb& program, const std::function<void(const Way&)>& function) {
  Visit({&program}, function);
}

std::vector<Option> ShownOptions(const Way& way) {
  const Verb &program = *way.front(), &verb = *way.back();
  std::vector<Option> shown;
  // The options of a program with verbs belong to these: help lists them there.
  if (way.size() > 1 || verb.verbs.empty())
    for (const Option& option : verb.options)
      if (!option.hidden) shown.push_back(option);
  for (const std::string& name : verb.shares)
    for (const Option& option : program.options)
      if (const auto names = NamesOf(option);
          std::find(names.begin(), names.end(), name) != names.end())
        shown.push_back(option);
  if (!verb.formats.empty())
    shown.push_back({.names = "-o,--output",
                     .value = "FORMAT",
                     .help = base::Join(verb.formats, ", ") + " [" + verb.formats.front() + "]"});
  if (!verb.formats.empty() && verb.formats.front() == "table")
    shown.push_back({.names = "--no-headers", .help = "tables without their header"});
  if (verb.watch)
    shown.push_back(
        {.names = "-w,--watch", .help = "show it again whenever it changes, until Ctrl-C"});
  if (way.size() == 1)
    shown.push_back({.names = "-v,--version", .help = "the version of this program"});
  shown.push_back({.names = "-h,--help", .help = "this text"});
  return shown;
}

std::string HelpOf(const Way& way, std::size_t columns) {
  columns = std::clamp(columns, kNarrowest, kWidest);
  const Verb& verb = *way.back();
  std::string text =
      Wrap(verb.summary, 0, columns) + "\n\n" + Wrap("Usage: " + UsageOf(way), 0, columns) + "\n";
  text += VerbLines(verb, columns);
  for (const auto& [group, options] : Grouped(ShownOptions(way))) {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const Option& option : options) rows.emplace_back(LabelOf(option), HelpOf(option));
    text += "\n" + group + ":\n" + Lines(rows, columns);
  }
  if (!verb.examples.empty()) text += "\nExamples:\n" + IndentedExamples(verb);
  text += WrapParagraphs(verb.details, columns);
  if (!verb.exit_status.empty())
    text += "\n" + Wrap("Exit status: " + verb.exit_status + ".", 0, columns) + "\n";
  return text;
}

std::size_t HelpColumns(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kWidest;
}

std::string Markdown(const Verb& program) {
  std::string page =
      "# The command line\n\nGenerated by `penstock help --markdown`; a test compares it with the "
      "program. The options of the program itself are accepted before and after\nevery verb.\n";
  ForEachVerb(program, [&page](const Way& way) {
    page += "\n## " + NameOf(way) + "\n\n```\n" + HelpOf(way, kWidest) + "```\n";
  });
  return page;
}

std::map<std::string, std::string> ManPages(const Verb& program, int section) {
  std::map<std::string, std::string> pages;
  ForEachVerb(program, [&](const Way& way) {
    pages[ManName(way) + "." + std::to_string(section)] = ManPage(way, section);
  });
  return pages;
}

}  // namespace penstock::app::command
