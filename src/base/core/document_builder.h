// Builds marked values from parser events; shared by the readers of JSON, YAML and TOML, private to base.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/core/document.h"

namespace penstock::base::internal {

/// Takes events in order and keeps what was built. Refuses over-deep nesting and, under a strict reading, keys that are there twice.
class Builder {
 public:
  Builder(Problems& problems, int most_depth) : problems_(problems), most_depth_(most_depth) {}

  /// A scalar, or a list or map that is complete.
  void Whole(Value value);
  void Begin(Value::Kind kind, Mark mark);
  /// Answers the list or map that ends here.
  Value End();
  /// A map's key where the parser tells keys apart (JSON); with YAML a key comes as a scalar.
  void Key(std::string key, Mark mark);

  int depth() const { return static_cast<int>(open_.size()); }
  bool too_deep() const { return too_deep_; }
  Value Take() { return std::move(root_); }

 private:
  struct Open {
    Value value;
    Value::List list;
    Value::Map map;
    std::map<std::string, std::size_t, std::less<>> places;  // of the keys, in a map that is too large to look through
    bool has_key = false;
    std::string key;
    Mark key_mark;

    Value::Entry* Known();
  };
  void Place(Value value);
  void RefuseKey(Mark mark);
  bool WantsKey() const { return !open_.empty() && open_.back().value.kind == Value::Kind::kMap && !open_.back().has_key; }

  Problems& problems_;
  int most_depth_;
  bool too_deep_ = false;
  Value root_;
  std::vector<Open> open_;
};

}  // namespace penstock::base::internal
