// Edits TOML by positions: replaces a value in place, adds a key to its table, and a table at the
// end.
#include <optional>

#include "protocol/engine/text/edit.h"
#include "protocol/engine/text/spelling.h"
#include "protocol/engine/text/toml_layout.h"

namespace penstock::protocol::engine::internal {
namespace {

using Index = std::optional<std::size_t>;

Path Parent(const Path& path) { return {path.begin(), path.end() - 1}; }

Path Relative(const Path& path, const Path& to) {
  return {path.begin() + static_cast<std::ptrdiff_t>(to.size()), path.end()};
}

/// A text with the positions of its tables and keys.
class Editor {
 public:
  Editor(std::string_view text, TomlLayout layout) : text_(text), layout_(std::move(layout)) {}

  base::Result<std::string> Set(const Setting& setting) const;
  base::Result<std::string> Remove(const Path& key) const;
  base::Result<std::string> RemoveHeader(const Path& table) const;

 private:
  bool Listed(const TomlEntry& entry) const { return layout_.tables[entry.table].listed; }
  const TomlEntry* FindEntry(const Path& path) const;
  Index FindTable(const Path& path) const;
  const TomlEntry* LastEntryOf(std::size_t table) const;
  const TomlEntry* DottedBeside(const Path& parent) const;
  std::string InTable(std::size_t table, const Setting& setting) const;
  std::string NewTable(const Setting& setting) const;
  std::size_t AfterHeadComment() const;
  std::string Insert(std::size_t at, std::string lines) const;
  std::string Cut(std::size_t begin, std::size_t end) const {
    return std::string(text_.substr(0, begin)).append(text_.substr(end));
  }
  std::string Line(std::string_view indent, const std::string& content) const {
    return std::string(indent) + content + layout_.line_end;
  }

  std::string_view text_;
  TomlLayout layout_;
};

std::string Assignment(const Path& key, const Setting& setting) {
  return Dotted(key) + " = " + TomlValue(setting.value);
}

const TomlEntry* Editor::FindEntry(const Path& path) const {
  for (const TomlEntry& entry : layout_.entries)
    if (entry.path == path && !Listed(entry)) return &entry;
  return nullptr;
}

Index Editor::FindTable(const Path& path) const {
  for (std::size_t i = 0; i < layout_.tables.size(); ++i)
    if (layout_.tables[i].path == path && !layout_.tables[i].listed) return i;
  return std::nullopt;
}

const TomlEntry* Editor::LastEntryOf(std::size_t table) const {
  const TomlEntry* last = nullptr;
  for (const TomlEntry& entry : layout_.entries)
    if (entry.table == table) last = &entry;
  return last;
}

/// Returns the last key that creates a table by its dots (`cni.bin_dir = ...`): such a table can
/// have no header.
const TomlEntry* Editor::DottedBeside(const Path& parent) const {
  const TomlEntry* last = nullptr;
  for (const TomlEntry& entry : layout_.entries) {
    const Path& table = layout_.tables[entry.table].path;
    if (!Listed(entry) && table.size() < parent.size() && entry.path.size() > parent.size() &&
        IsBelow(entry.path, parent))
      last = &entry;
  }
  return last;
}

base::Result<std::string> Editor::Set(const Setting& setting) const {
  if (const TomlEntry* entry = FindEntry(setting.path)) {
    std::string made(text_);
    return made.replace(entry->value_begin, entry->value_end - entry->value_begin,
                        TomlValue(setting.value));
  }
  for (const TomlEntry& entry : layout_.entries)
    if (!Listed(entry) && entry.path.size() < setting.path.size() &&
        IsBelow(setting.path, entry.path))
      return Error(Code::kFailedPrecondition,
                   Dotted(entry.path) + " is an inline table, which is not edited: write " +
                       Assignment(Relative(setting.path, entry.path), setting) + " into it");
  const Path parent = Parent(setting.path);
  if (const TomlEntry* beside = DottedBeside(parent)) {
    const Path key = Relative(setting.path, layout_.tables[beside->table].path);
    return Insert(beside->line_end,
                  Line(Indentation(text_, beside->line_begin), Assignment(key, setting)));
  }
  if (const Index table = FindTable(parent)) return InTable(*table, setting);
  return NewTable(setting);
}

std::string Editor::InTable(std::size_t table, const Setting& setting) const {
  const std::string line = Assignment({setting.path.back()}, setting);
  if (const TomlEntry* last = LastEntryOf(table))
    return Insert(last->line_end, Line(Indentation(text_, last->line_begin), line));
  if (table == 0) return Insert(AfterHeadComment(), Line("", line));
  return Insert(layout_.tables[table].header_end,
                Line(Indentation(text_, layout_.tables[table].begin), line));
}

/// New tables are added at the end, where they take no comment of another table.
std::string Editor::NewTable(const Setting& setting) const {
  const std::string lines = Line("", "[" + Dotted(Parent(setting.path)) + "]") +
                            Line("", Assignment({setting.path.back()}, setting));
  return Insert(text_.size(),
                (text_.size() == layout_.tables.front().begin ? "" : layout_.line_end) + lines);
}

/// Returns the position after the comment at the beginning of the file.
std::size_t Editor::AfterHeadComment() const {
  std::size_t at = layout_.tables.front().begin;
  while (at < text_.size() && text_[at] == '#') {
    const std::size_t end = text_.find('\n', at);
    if (end == std::string_view::npos) return text_.size();
    at = end + 1;
  }
  return at;
}

std::string Editor::Insert(std::size_t at, std::string lines) const {
  std::string made(text_);
  // The last line of a file may lack its line end.
  if (at > layout_.tables.front().begin && made[at - 1] != '\n') lines.insert(0, layout_.line_end);
  return made.insert(at, lines);
}

base::Result<std::string> Editor::Remove(const Path& key) const {
  if (const TomlEntry* entry = FindEntry(key)) return Cut(entry->line_begin, entry->line_end);
  return Error(Code::kFailedPrecondition, Dotted(key) + " is not on a line of its own");
}

base::Result<std::string> Editor::RemoveHeader(const Path& path) const {
  const Index table = FindTable(path);
  if (!table || *table == 0 || LastEntryOf(*table) != nullptr)
    return Error(Code::kFailedPrecondition, "[" + Dotted(path) + "] has no header of its own");
  std::size_t begin = layout_.tables[*table].begin;
  // Also removes the blank line that was inserted before it.
  if (begin > layout_.line_end.size() && text_.substr(0, begin).ends_with("\n" + layout_.line_end))
    begin -= layout_.line_end.size();
  return Cut(begin, layout_.tables[*table].header_end);
}

base::Result<Editor> Open(std::string_view text) {
  ASSIGN(TomlLayout layout, LayOut(text));
  return Editor(text, std::move(layout));
}

}  // namespace

base::Result<std::string> ApplyToml(std::string_view text, const Setting& setting) {
  ASSIGN(const Editor editor, Open(text));
  return editor.Set(setting);
}

base::Result<std::string> WithdrawToml(std::string_view text, const Path& key) {
  ASSIGN(const Editor editor, Open(text));
  return editor.Remove(key);
}

base::Result<std::string> WithdrawHeader(std::string_view text, const Path& table) {
  ASSIGN(const Editor editor, Open(text));
  return editor.RemoveHeader(table);
}

}  // namespace penstock::protocol::engine::internal
