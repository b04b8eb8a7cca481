// Only root writes these files; their contents are checked all the same, since a release becomes a
// part of images' names.
#include "os/next_kernel.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <sys/utsname.h>

#include "base/core/strings.h"
#include "os/core/root.h"

namespace penstock::os {
namespace {

constexpr std::size_t kLongestRelease = 64;  // as in utsname
constexpr std::size_t kMostOfMenu = 1u << 20, kMostOfEnvironment = 64u << 10,
                      kMostOfEntry = 64u << 10;
constexpr std::size_t kMostEntries = 512, kMostBlocks = 16;
constexpr std::string_view kDigits = "0123456789";

using Variables = std::map<std::string, std::string>;

/// A file that may be missing, and then is empty.
struct Text {
  bool exists = false, readable = true;
  std::string text;
};

Text ReadText(const Root& root, const std::string& path, std::size_t most) {
  auto text = root.Read(path, most);
  if (text.ok()) return {true, true, *std::move(text)};
  return {text.error().code() != base::Code::kNotFound,
          text.error().code() == base::Code::kNotFound, ""};
}

/// An entry of a boot menu, or a submenu.
struct MenuItem {
  std::string title, id;
  std::string kernel;           // release; empty: another system
  std::vector<MenuItem> items;  // of a submenu
};
using Menu = std::vector<MenuItem>;

/// Of the file of a kernel: "/boot/vmlinuz-6.1.0-18-amd64", or as kernel-install(8) puts it:
/// "/<machine>/6.1.0-18-amd64/linux".
std::string ReleaseOf(std::string_view path) {
  const std::string leaf = base::LeafOf(path);
  for (const std::string_view prefix : {"vmlinuz-", "vmlinux-", "Image-", "kernel-"})
    if (leaf.starts_with(prefix) && IsKernelRelease(leaf.substr(prefix.size())))
      return leaf.substr(prefix.size());
  const std::string folder = base::LeafOf(base::FolderOf(path));
  return leaf == "linux" && IsKernelRelease(folder) ? folder : "";
}

/// Compares names with versions in them: numbers by their values, as package managers do.
int CompareReleases(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    const bool numbers = std::isdigit(static_cast<unsigned char>(a.front())) != 0 &&
                         std::isdigit(static_cast<unsigned char>(b.front())) != 0;
    if (!numbers) {
      if (a.front() != b.front()) return a.front() < b.front() ? -1 : 1;
      a.remove_prefix(1);
      b.remove_prefix(1);
      continue;
    }
    const auto take = [](std::string_view& text) {
      std::string_view digits = text.substr(0, text.find_first_not_of(kDigits));
      text.remove_prefix(digits.size());
      digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
      return digits;
    };
    const std::string_view x = take(a), y = take(b);
    if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
    if (const int order = x.compare(y); order != 0) return order;
  }
  return a.empty() && b.empty() ? 0 : a.empty() ? -1 : 1;
}

/// Blocks of "name=value", as grub-editenv(1) writes them.
Variables ParseEnvironment(std::string_view text) {
  Variables variables;
  for (const std::string& line : base::Split(text, '\n')) {
    const auto equals = line.find('=');
    if (line.starts_with('#') || equals == std::string::npos) continue;
    variables[line.substr(0, equals)] = base::Trim(std::string_view(line).substr(equals + 1));
  }
  return variables;
}

/// The words of a line of grub.cfg, without quotes.
std::vector<std::string> WordsOf(std::string_view line) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (const char c : line) {
    if (quote != 0 ? c == quote : c == '\'' || c == '"') {
      quote = quote != 0 ? '\0' : c;
      if (!in_word) words.emplace_back();
      in_word = true;
    } else if (quote == 0 && std::isspace(static_cast<unsigned char>(c)) != 0) {
      in_word = false;
    } else {
      if (!in_word) words.emplace_back();
      in_word = true;
      words.back() += c;
    }
  }
  return words;
}

/// Reads the menu of a grub.cfg as grub-mkconfig writes it: entries, submenus, and which is the
/// default. Conditions are not evaluated.
class MenuReader {
 public:
  explicit MenuReader(std::string_view text) {
    for (const std::string& line : base::Split(text, '\n')) Read(base::Trim(line));
  }

  Menu menu;
  bool lists_entries = false;  ///< those of the Boot Loader Specification
  std::string fallback;        ///< the default, unless next_entry is set; may be a variable's name

 private:
  void Read(std::string_view line) {
    if (line.starts_with('#')) return;
    const bool opens = line.ends_with('{');
    const std::vector<std::string> words = WordsOf(line);
    if (words.empty()) return;
    if (words[0] == "menuentry" || words[0] == "submenu") {
      Open(words, opens);
    } else if (opens) {
      path_.push_back(nullptr);
    } else if (line == "}") {
      if (!path_.empty()) path_.pop_back();
    } else if (words[0].starts_with("linux") && words.size() > 1 && Entry() != nullptr) {
      if (Entry()->kernel.empty()) Entry()->kernel = ReleaseOf(words[1]);
    } else if (words[0] == "blscfg") {
      lists_entries = true;
    } else if (words[0] == "set" && words.size() > 1) {
      Set(words[1]);
    }
  }

  void Open(const std::vector<std::string>& words, bool opens) {
    Menu* menu_here = path_.empty() ? &menu : Entry() != nullptr ? &Entry()->items : nullptr;
    const bool fits = entries_ < kMostEntries && path_.size() < kMostBlocks;
    MenuItem* item = nullptr;
    if (menu_here != nullptr && fits) {
      ++entries_;
      // Pointers to the items around it stay valid: only the innermost menu grows.
      item = &menu_here->emplace_back();
      item->title = words.size() > 1 ? words[1] : "";
      for (std::size_t i = 2; i + 1 < words.size(); ++i)
        if (words[i] == "$menuentry_id_option" || words[i] == "--id") item->id = words[i + 1];
    }
    if (opens) path_.push_back(item);
  }

  /// The first one counts that is not about next_entry.
  void Set(std::string_view assignment) {
    constexpr std::string_view kDefault = "default=";
    if (!assignment.starts_with(kDefault) || !fallback.empty()) return;
    const std::string_view value = assignment.substr(kDefault.size());
    if (value != "${next_entry}") fallback = value;
  }

  MenuItem* Entry() const { return path_.empty() ? nullptr : path_.back(); }

  std::vector<MenuItem*> path_;  // blocks that are open; null: neither an entry nor a submenu
  std::size_t entries_ = 0;
};

/// The keys of an entry of the Boot Loader Specification.
MenuItem ParseEntry(std::string id, std::string_view text) {
  MenuItem item{.id = std::move(id)};
  std::string version;
  for (const std::string& line : base::Split(text, '\n')) {
    const std::string_view trimmed = base::Trim(line);
    const std::size_t end = std::min(trimmed.find_first_of(" \t"), trimmed.size());
    const std::string_view key = trimmed.substr(0, end), value = base::Trim(trimmed.substr(end));
    if (key == "title") item.title = value;
    if (key == "version") version = value;
    if (key == "linux") item.kernel = ReleaseOf(value);
  }
  if (item.kernel.empty() && IsKernelRelease(version)) item.kernel = version;
  return item;
}

/// In the order of GRUB's menu: the newest first.
Menu ListEntries(const Root& root) {
  constexpr std::string_view kEnding = ".conf";
  const std::string folder = "/boot/loader/entries";
  auto names = root.List(folder);
  if (!names.ok()) return {};
  std::erase_if(*names, [&](const std::string& name) { return !name.ends_with(kEnding); });
  std::ranges::sort(
      *names, [](const std::string& a, const std::string& b) { return CompareReleases(a, b) > 0; });
  Menu menu;
  for (const std::string& name : *names) {
    if (menu.size() == kMostEntries) break;
    if (const auto text = root.Read(folder + "/" + name, kMostOfEntry); text.ok())
      menu.push_back(ParseEntry(name.substr(0, name.size() - kEnding.size()), *text));
  }
  return menu;
}

/// The entry that GRUB boots for a value of `default`: a number, a title or an id, with those of
/// submenus before it ("1>2"). One that there is not means the first.
const MenuItem* Choose(const Menu& menu, std::string_view wanted) {
  if (menu.empty()) return nullptr;
  const std::size_t end = wanted.find('>');
  const std::string head(wanted.substr(0, end));
  const MenuItem* chosen = &menu.front();
  if (const auto number = base::ParseUint(head)) {
    if (*number < menu.size()) chosen = &menu[*number];
  } else if (!head.empty()) {
    const auto named = std::ranges::find_if(
        menu, [&](const MenuItem& item) { return item.title == head || item.id == head; });
    if (named != menu.end()) chosen = &*named;
  }
  if (chosen->items.empty()) return chosen;
  return Choose(chosen->items, end == std::string_view::npos ? "0" : wanted.substr(end + 1));
}

std::string ValueOf(const Variables& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

/// What grub.cfg and grubenv of a folder say; nothing: there is no menu.
std::optional<std::string> FromGrub(const Root& root, const std::string& folder) {
  const Text config = ReadText(root, folder + "/grub.cfg", kMostOfMenu);
  const Text environment = ReadText(root, folder + "/grubenv", kMostOfEnvironment);
  if (!config.readable || !environment.readable) return "";
  const MenuReader reader(config.text);
  const bool lists = reader.lists_entries || !config.exists;
  const Menu listed = lists ? ListEntries(root) : Menu();
  const Menu& menu = lists ? listed : reader.menu;
  if (menu.empty()) return std::nullopt;
  const Variables variables = ParseEnvironment(environment.text);
  std::string wanted = ValueOf(variables, "next_entry");
  if (wanted.empty())
    wanted = reader.fallback == "${saved_entry}" || !config.exists
                 ? ValueOf(variables, "saved_entry")
                 : reader.fallback;
  return Choose(menu, wanted)->kernel;
}

std::string FromLinks(const Root& root) {
  for (const char* link : {"/vmlinuz", "/boot/vmlinuz"}) {
    const auto file = root.OpenFile(link, O_PATH | O_CLOEXEC);
    if (!file.ok()) continue;
    if (const auto path = root.PathOf(*file); path.ok())
      if (std::string release = ReleaseOf(*path); !release.empty()) return release;
  }
  return "";
}

std::string FromFiles(const Root& root) {
  const auto names = root.List("/boot");
  if (!names.ok()) return "";
  std::string newest;
  for (const std::string& name : *names) {
    std::string release = ReleaseOf(name);
    if (release.empty() || !root.Exists("/lib/modules/" + release)) continue;
    if (newest.empty() || CompareReleases(release, newest) > 0) newest = std::move(release);
  }
  return newest;
}

}  // namespace

std::string RunningKernel() {
  struct utsname name {};
  return ::uname(&name) == 0 ? name.release : "";
}

bool IsKernelRelease(std::string_view text) {
  if (text.empty() || text.size() > kLongestRelease) return false;
  if (!std::isdigit(static_cast<unsigned char>(text.front()))) return false;
  return std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '+' || c == '~' || c == '-';
  });
}

std::string NextKernel(const std::string& root_folder) {
  const auto root = Root::Open(root_folder);
  if (!root.ok()) return "";
  for (const char* folder : {"/boot/grub2", "/boot/grub"})
    if (root->Exists(folder))
      if (auto release = FromGrub(*root, folder)) return *std::move(release);
  if (std::string release = FromLinks(*root); !release.empty()) return release;
  return FromFiles(*root);
}

}  // namespace penstock::os
