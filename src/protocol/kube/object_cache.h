// Holds the objects that an informer knows, within limits of number and size. Does no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "protocol/kube/watch.h"

namespace penstock::protocol::kube {

/// Not thread-safe.
class ObjectCache {
 public:
  using Key = std::pair<std::string, std::string>;  ///< namespace, name

  ObjectCache(std::size_t most_objects, std::size_t most_bytes)
      : most_objects_(most_objects), most_bytes_(most_bytes) {}

  enum class Kept { kChanged, kSame, kNoRoom };
  /// kNoRoom: nothing changed, and an older state of the object stays. In each case the object
  /// counts as seen by the current list.
  Kept Put(const ObjectMeta& meta, Object object);
  bool Remove(const Key& key);

  /// Begins a list; EndList removes and returns all objects that were not Put since.
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

}  // namespace penstock::protocol::kube
