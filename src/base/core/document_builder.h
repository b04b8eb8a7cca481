// Builds values with positions from parser events; shared by the readers of JSON, YAML and TOML,
// private to base.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/core/document.h"

namespace penstock::base::internal {

/// Takes parser events in order and builds the document. Refuses too deep nesting and, under a
/// strict reading, duplicate keys.
class Builder {
 public:
  Builder(Problems& problems, int most_depth) : problems_(problems), most_depth_(most_depth) {}

  /// Adds a scalar, or a complete list or map.
  void Whole(Value value);
  void Begin(Value::Kind kind, Mark mark);
  /// Returns the list or map that ends here.
  Value End();
  /// A map's key, for parsers that distinguish keys (JSON); in YAML a key arrives as a scalar.
  void Key(std::string key, Mark mark);

  int depth() const { return static_cast<int>(open_.size()); }
  bool too_deep() const { return too_deep_; }
  Value Take() { return std::move(root_); }

 private:
  struct Open {
    Value value;
    Value::List list;
    Value::Map map;
    std::map<std::string, std::size_t, std::less<>>
        places;  // indices of the keys, for a map that is too large for a linear search
    bool has_key = false;
    std::string key;
    Mark key_mark;

    Value::Entry* Known();
  };
  void Place(Value value);
  void RefuseKey(Mark mark);
  bool WantsKey() const {
    return !open_.empty() && open_.back().value.kind == Value::Kind::kMap && !open_.back().has_key;
  }

  Problems& problems_;
  int most_depth_;
  bool too_deep_ = false;
  Value root_;
  std::vector<Open> open_;
};

}  // namespace penstock::base::internal
