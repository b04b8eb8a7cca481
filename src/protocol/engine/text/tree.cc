#include "protocol/engine/text/tree.h"

#include <algorithm>
#include <set>

#include "protocol/engine/text/spelling.h"

namespace penstock::protocol::engine {
namespace {

using base::Value;

constexpr char kMap[] = "{}";

void Add(const Value& value, Path& path, Tree& tree) {
  if (!value.map) {
    tree[path] = Spell(value);
    return;
  }
  if (!path.empty()) tree[path] = kMap;
  for (const Value::Entry& entry : *value.map) {
    path.push_back(entry.key);
    Add(entry.value, path, tree);
    path.pop_back();
  }
}

Value Scalar(Value::Kind kind, std::string text) {
  Value value;
  value.kind = kind;
  value.text = std::move(text);
  return value;
}

/// A map with keys needs no entry of its own: its keys represent it.
bool IsFilledMap(const Tree& tree, const Tree::const_iterator& at) {
  const auto next = std::next(at);
  return at->second == kMap && next != tree.end() && IsBelow(next->first, at->first);
}

}  // namespace

Value Text(std::string text) { return Scalar(Value::Kind::kString, std::move(text)); }

Value Flag(bool on) {
  Value value = Scalar(Value::Kind::kBool, on ? "true" : "false");
  value.boolean = on;
  return value;
}

Value Texts(const std::vector<std::string>& texts) {
  Value::List list;
  for (const std::string& text : texts) list.push_back(Text(text));
  Value value = Scalar(Value::Kind::kList, "");
  value.list = std::make_shared<const Value::List>(std::move(list));
  return value;
}

std::string Spell(const Value& value) {
  if (value.kind == Value::Kind::kString) return QuoteJson(value.text);
  std::string text;
  if (value.list) {
    for (const Value& item : *value.list) text += (text.empty() ? "" : ", ") + Spell(item);
    return "[" + text + "]";
  }
  if (value.map) {
    for (const Value::Entry& entry : *value.map)
      text += (text.empty() ? "" : ", ") + QuoteJson(entry.key) + ": " + Spell(entry.value);
    return "{" + text + "}";
  }
  return value.kind == Value::Kind::kNull ? "null" : value.text;
}

Tree ToTree(const Value& document) {
  Tree tree;
  Path path;
  if (document.map) Add(document, path, tree);
  return tree;
}

void Put(Tree& tree, const Setting& setting) {
  Take(tree, setting.path);
  for (std::size_t depth = 1; depth < setting.path.size(); ++depth)
    tree[Path(setting.path.begin(), setting.path.begin() + static_cast<std::ptrdiff_t>(depth))] =
        kMap;
  tree[setting.path] = Spell(setting.value);
}

void Take(Tree& tree, const Path& path) {
  for (auto at = tree.lower_bound(path); at != tree.end() && IsBelow(at->first, path);)
    at = tree.erase(at);
}

std::vector<Difference> Compare(const Tree& before, const Tree& after) {
  std::set<Path> paths;
  for (const Tree* tree : {&before, &after})
    for (auto at = tree->begin(); at != tree->end(); ++at)
      if (!IsFilledMap(*tree, at)) paths.insert(at->first);
  std::vector<Difference> differences;
  const auto at = [](const Tree& tree, const Path& path) {
    const auto found = tree.find(path);
    return found == tree.end() ? std::string() : found->second;
  };
  for (const Path& path : paths) {
    Difference difference{path, at(before, path), at(after, path)};
    if (difference.before != difference.after) differences.push_back(std::move(difference));
  }
  return differences;
}

bool IsBelow(const Path& path, const Path& top) {
  return path.size() >= top.size() && std::equal(top.begin(), top.end(), path.begin());
}

const Value* FindAt(const Value& document, const Path& path) {
  const Value* value = &document;
  for (const std::string& key : path)
    if ((value = value->Find(key)) == nullptr) return nullptr;
  return value;
}

std::string Dotted(const Path& path) {
  std::string text;
  for (const std::string& key : path) text += (text.empty() ? "" : ".") + TomlKey(key);
  return text;
}

}  // namespace penstock::protocol::engine
