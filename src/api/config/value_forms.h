// The forms that values of configuration keys have: how each is read, printed and checked. A form
// has Read, Text and Problem as ConfigKey describes them. Private to src/api.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/config/node_config.h"
#include "base/core/document.h"
#include "base/core/strings.h"

namespace penstock::api::internal {

/// Returns a scalar that reads back as the same string.
std::string Quoted(std::string_view text);
std::string QuotedList(const std::vector<std::string>& items);  ///< "[\"GPU-1\", \"0\"]"

/// Reads the ids, indices and globs at the key `devices`: strings, or numbers for indices.
std::vector<std::string> ReadSelectors(base::MapReader& reader, base::Problems& problems);

struct Form {
  std::string Problem(const auto&) const { return ""; }
};

/// Strings, lists of strings, booleans; switches are auto, on or off, and true and false mean on
/// and off.
struct Plain : Form {
  void Read(base::MapReader&, std::string_view key, base::Problems&, std::string&) const;
  void Read(base::MapReader&, std::string_view key, base::Problems&,
            std::vector<std::string>&) const;
  void Read(base::MapReader&, std::string_view key, base::Problems&, bool&) const;
  void Read(base::MapReader&, std::string_view key, base::Problems&, Switch&) const;
  std::string Text(const std::string& text) const { return " " + Quoted(text) + "\n"; }
  std::string Text(const std::vector<std::string>& all) const {
    return " " + QuotedList(all) + "\n";
  }
  std::string Text(bool value) const { return value ? " true\n" : " false\n"; }
  std::string Text(Switch value) const;
};

/// Absolute.
struct AbsolutePath : Plain {
  explicit AbsolutePath(bool empty = true) : may_be_empty(empty) {}
  std::string Problem(const std::string& path) const;

  bool may_be_empty;
};

struct Time {
  void Read(base::MapReader&, std::string_view key, base::Problems&, base::Duration&) const;
  std::string Text(base::Duration duration) const;
  std::string Problem(base::Duration duration) const;

  base::Duration least, most;
};

struct Size {
  void Read(base::MapReader&, std::string_view key, base::Problems&, base::Bytes&) const;
  std::string Text(base::Bytes bytes) const;
  std::string Problem(base::Bytes bytes) const;

  base::Bytes least, most;
};

struct Numeric : Form {
  Numeric(std::int64_t from, std::int64_t to) : least(from), most(to) {}
  void Read(base::MapReader&, std::string_view key, base::Problems&, int&) const;
  void Read(base::MapReader&, std::string_view key, base::Problems&, double&) const;
  std::string Text(int number) const { return " " + std::to_string(number) + "\n"; }
  std::string Text(double number) const;

  std::int64_t least, most;
};

template <typename Meaning>
using Vocabulary = std::span<const std::pair<std::string_view, Meaning>>;

template <typename Meaning>
std::vector<std::string> WordsOf(Vocabulary<Meaning> vocabulary) {
  std::vector<std::string> words;
  for (const auto& [word, meaning] : vocabulary) words.emplace_back(word);
  return words;
}

template <typename Meaning>
std::string_view WordFor(Vocabulary<Meaning> vocabulary, const Meaning& wanted) {
  for (const auto& [word, meaning] : vocabulary)
    if (meaning == wanted) return word;
  return "";
}

/// Sets `target` if the word is in the vocabulary, and returns whether it is.
template <typename Meaning>
bool Translate(Vocabulary<Meaning> vocabulary, std::string_view word, Meaning& target) {
  for (const auto& [known, meaning] : vocabulary) {
    if (known != word) continue;
    target = meaning;
    return true;
  }
  return false;
}

/// One word of several.
template <typename Meaning>
struct OneOf : Form {
  template <std::size_t kSize>
  explicit OneOf(const std::pair<std::string_view, Meaning> (&all)[kSize]) : vocabulary(all) {}
  void Read(base::MapReader& reader, std::string_view key, base::Problems&, Meaning& target) const {
    if (const auto word = reader.OneOf(key, WordsOf(vocabulary)))
      Translate(vocabulary, *word, target);
  }
  std::string Text(Meaning value) const {
    return " " + std::string(WordFor(vocabulary, value)) + "\n";
  }

  Vocabulary<Meaning> vocabulary;
};

/// A list of such words. `quotes`: errors repeat the wrong item; `once`: no word may appear twice.
template <typename Meaning>
struct Some : Form {
  template <std::size_t kSize>
  explicit Some(const std::pair<std::string_view, Meaning> (&all)[kSize], bool repeat_item = false,
                bool only_once = false)
      : vocabulary(all), quotes(repeat_item), once(only_once) {}
  void Read(base::MapReader& reader, std::string_view key, base::Problems& problems,
            std::vector<Meaning>& target) const {
    const base::Value* list = reader.List(key);
    if (list == nullptr) return;
    target.clear();
    const std::vector<std::string> words = WordsOf(vocabulary);
    for (const base::Value& item : *list->list) {
      const std::string path = reader.Path(key) + ": ", quoted = "\"" + item.text + "\"";
      if (Meaning meaning{}; !Translate(vocabulary, item.text, meaning)) {
        const auto near = base::Nearest(item.text, words);
        problems.Add(item.mark, path + (quotes ? quoted : "an item") + " is none of " +
                                    base::Join(words, ", ") +
                                    (near ? "; did you mean \"" + *near + "\"?" : ""));
      } else if (once && std::ranges::find(target, meaning) != target.end()) {
        problems.Add(item.mark, path + quoted + " is named twice");
      } else {
        target.push_back(meaning);
      }
    }
  }
  std::string Text(const std::vector<Meaning>& all) const {
    std::vector<std::string> words;
    for (const Meaning& one : all) words.emplace_back(WordFor(vocabulary, one));
    return " [" + base::Join(words, ", ") + "]\n";
  }

  Vocabulary<Meaning> vocabulary;
  bool quotes, once;
};

/// A list of maps.
template <typename Item>
struct Maps : Form {
  using Reader = std::function<void(base::MapReader&, base::Problems&, Item&)>;
  using Writer = std::vector<std::string> (*)(const Item&);  // "kind: xid", "action: drain"

  Maps(Reader one, Writer of_one) : read(std::move(one)), write(of_one) {}
  void Read(base::MapReader& reader, std::string_view key, base::Problems& problems,
            std::vector<Item>& target) const {
    const base::Value* list = reader.List(key);
    if (list == nullptr) return;
    target.clear();
    for (const base::Value& one : *list->list) {
      base::MapReader map(one, base::Item(reader.Path(key), target.size()), problems);
      read(map, problems, target.emplace_back());
      map.Finish();
    }
  }
  std::string Text(const std::vector<Item>& items) const {
    if (items.empty()) return " []\n";
    std::string text = "\n";
    for (const Item& item : items) text += "    - {" + base::Join(write(item), ", ") + "}\n";
    return text;
  }

  Reader read;
  Writer write;
};

}  // namespace penstock::api::internal
