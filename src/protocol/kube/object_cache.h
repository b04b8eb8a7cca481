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

  /// `packed`: objects are kept as text.
  ObjectCache(std::size_t most_objects, std::size_t most_bytes, bool packed = false)
      : most_objects_(most_objects), most_bytes_(most_bytes), packed_(packed) {}

  enum class Kept { kChanged, kSame, kNoRoom };
  /// kNoRoom: nothing changed, and an older state of the object stays. In each case the object
  /// counts as seen by the current list. kSame: also a version before one that was learned.
  Kept Put(const ObjectMeta& meta, Object object);
  /// Whether it was there. Not what was deleted before the version that was learned.
  bool Remove(const ObjectMeta& deleted);

  /// An object as the server has answered it. kSame: what is known is newer, or the same, or the
  /// object is not known: it may have been deleted since. kNoRoom: nothing changed.
  Kept Learn(const ObjectMeta& meta, Object object);

  /// Begins a list; EndList removes and returns all objects that were not Put since. A server that
  /// is listed again may have lost what was learned before.
  void BeginList();
  std::vector<Key> EndList();

  Object Find(const Key& key) const;            ///< null: it is not known
  std::string VersionOf(const Key& key) const;  ///< empty: it is not known
  std::size_t size() const { return entries_.size(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    Object object;     ///< null where it is packed
    std::string text;  ///< empty where it is not
    std::string version;
    std::size_t bytes = 0;
    std::uint64_t list = 0;
    bool is_learned = false;  ///< a list or watch may have older versions yet to come
  };
  bool Erase(const Key& key);
  bool HasContentOf(const Entry& one, const Entry& other) const;

  std::size_t most_objects_, most_bytes_;
  bool packed_;
  std::map<Key, Entry> entries_;
  std::size_t bytes_ = 0;
  std::uint64_t list_ = 0;
};

}  // namespace penstock::protocol::kube
