// Edits JSON by positions: replaces a value in place, and appends a member to its object, formatted
// like the other members.
#include <algorithm>
#include <vector>

#include "base/core/document.h"
#include "protocol/engine/text/edit.h"
#include "protocol/engine/text/spelling.h"

namespace penstock::protocol::engine::internal {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

struct Member {
  std::string key;
  std::size_t key_begin = 0, value_begin = 0, value_end = 0;
};

struct Object {
  std::size_t begin = 0, end = 0;  ///< position of { and position after }
  std::vector<Member> members;
};

std::size_t Skip(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(kBlanks, at), text.size());
}

/// Returns the position after a string, or after any other value; the text is well-formed.
std::size_t EndOfString(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at + 1, text.size());
}

std::size_t EndOfValue(std::string_view text, std::size_t at) {
  if (text[at] == '"') return EndOfString(text, at);
  if (text[at] != '{' && text[at] != '[')
    return std::min(text.find_first_of(" \t\r\n,]}", at), text.size());
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    at = c == '"' ? EndOfString(text, at) : at + 1;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) break;
  }
  return at;
}

/// Reads the object that begins at `at`. The JSON parser decodes keys with escapes.
base::Result<Object> ReadObject(std::string_view text, std::size_t at) {
  Object object{.begin = at};
  for (at = Skip(text, at + 1); at < text.size() && text[at] != '}'; at = Skip(text, at)) {
    Member member{.key_begin = at};
    at = EndOfString(text, at);
    ASSIGN(const base::Value key,
           base::ParseJson(text.substr(member.key_begin, at - member.key_begin), "key"));
    member.key = key.text;
    member.value_begin = Skip(text, Skip(text, at) + 1);
    if (member.value_begin >= text.size()) return Error(Code::kInternal, "cannot parse the text");
    at = member.value_end = EndOfValue(text, member.value_begin);
    object.members.push_back(std::move(member));
    at = Skip(text, at);
    if (at < text.size() && text[at] == ',') ++at;
  }
  object.end = std::min(at + 1, text.size());
  return object;
}

const Member* Find(const Object& object, const std::string& key) {
  const auto found = std::ranges::find(object.members, key, &Member::key);
  return found == object.members.end() ? nullptr : &*found;
}

struct Place {
  Object object;
  std::size_t depth = 0;  ///< number of path elements that lead to it
};

/// Returns the deepest existing object on a path.
base::Result<Place> Descend(std::string_view text, const Path& path) {
  Place place;
  ASSIGN(place.object, ReadObject(text, Skip(text, 0)));
  while (place.depth + 1 < path.size()) {
    const Member* next = Find(place.object, path[place.depth]);
    if (next == nullptr) break;
    ASSIGN(place.object, ReadObject(text, next->value_begin));
    ++place.depth;
  }
  return place;
}

std::string LineEnd(std::string_view text) {
  return text.find("\r\n") == std::string_view::npos ? "\n" : "\r\n";
}

/// Returns the blanks before a position if its line has nothing else before it.
std::string IndentAt(std::string_view text, std::size_t at) {
  const auto line = text.rfind('\n', at == 0 ? 0 : at - 1);
  const std::size_t begin = line == std::string_view::npos ? 0 : line + 1;
  const std::size_t end = std::min(text.find_first_not_of(" \t", begin), at);
  return std::string(text.substr(begin, end - begin));
}

/// Returns the indentation of one level, taken from the document's first member.
std::string IndentStep(std::string_view text) {
  const auto top = ReadObject(text, Skip(text, 0));
  if (!top.ok() || top->members.empty()) return "    ";
  const std::string step = IndentAt(text, top->members.front().key_begin);
  return step.empty() ? "    " : step;
}

/// Returns "key": value, with the objects in its path.
std::string Spelled(const Path& path, std::size_t depth, const base::Value& value,
                    const std::string& line, const std::string& step) {
  const std::string key = QuoteJson(path[depth]) + ": ";
  if (depth + 1 == path.size()) return key + Spell(value);
  return key + "{" + line + step + Spelled(path, depth + 1, value, line + step, step) + line + "}";
}

}  // namespace

base::Result<std::string> ApplyJson(std::string_view text, const Setting& setting) {
  const std::string whole(Skip(text, 0) == text.size() ? std::string_view("{}\n") : text);
  ASSIGN(const Place place, Descend(whole, setting.path));
  const Object& object = place.object;
  std::string made = whole;
  const Member* member = Find(object, setting.path[place.depth]);
  if (member != nullptr)
    return made.replace(member->value_begin, member->value_end - member->value_begin,
                        Spell(setting.value));
  const std::string step = IndentStep(whole);
  const std::size_t inside =
      object.members.empty() ? object.begin + 1 : object.members.back().value_end;
  const bool one_line =
      !object.members.empty() &&
      whole.substr(object.begin, object.end - object.begin).find('\n') == std::string::npos;
  if (one_line)
    return made.insert(inside, ", " + Spelled(setting.path, place.depth, setting.value, " ", ""));
  const std::string outer = LineEnd(whole) + IndentAt(whole, object.begin);
  const std::string line = object.members.empty()
                               ? outer + step
                               : LineEnd(whole) + IndentAt(whole, object.members.back().key_begin);
  const std::string spelled = line + Spelled(setting.path, place.depth, setting.value, line, step);
  if (!object.members.empty()) return made.insert(inside, "," + spelled);
  return made.replace(inside, object.end - 1 - inside, spelled + outer);
}

base::Result<std::string> WithdrawJson(std::string_view text, const Path& key) {
  ASSIGN(const Place place, Descend(text, key));
  const auto& members = place.object.members;
  const Member* member = place.depth + 1 == key.size() ? Find(place.object, key.back()) : nullptr;
  if (member == nullptr) return Error(Code::kFailedPrecondition, Dotted(key) + " is missing");
  std::string made(text);
  const auto index = static_cast<std::size_t>(member - members.data());
  std::size_t begin = place.object.begin + 1, end = place.object.end - 1;
  if (index > 0) {
    begin = members[index - 1].value_end;
    end = member->value_end;
  } else if (members.size() > 1) {
    begin = member->key_begin;
    end = members[1].key_begin;
  }
  return made.erase(begin, end - begin);
}

}  // namespace penstock::protocol::engine::internal
