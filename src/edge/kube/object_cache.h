// The objects that an informer knows, within bounds. Asks nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "edge/kube/watch.h"

namespace penstock::edge::kube {

/// Not thread-safe.
class ObjectCache {
 public:
  using Key = std::pair<std::string, std::string>;  ///< namespace, name

  ObjectCache(std::size_t most_objects, std::size_t most_bytes) : most_objects_(most_objects), most_bytes_(most_bytes) {}

  enum class Kept { kChanged, kSame, kNoRoom };
  /// kNoRoom: nothing has changed, an older state of the object stays. In each case it counts as seen by the list that is under way.
  Kept Put(const ObjectMeta& meta, Object object);
  bool Remove(const Key& key);

  /// A list begins; at its end all that was not Put since is removed and returned.
  void BeginList() { ++list_; }
  std::vector<Key> EndList();

  const Json* Find(const Key& key) const;
  std::size_t size() const { return entries_.size(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    Object object;
    std::string version;
    std::size_t bytes = 0;
    std::uint64_t list = 0;
  };
  std::size_t most_objects_, most_bytes_;
  std::map<Key, Entry> entries_;
  std::size_t bytes_ = 0;
  std::uint64_t list_ = 0;
};

}  // namespace penstock::edge::kube
