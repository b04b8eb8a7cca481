// Counts bytes as text; a Json takes about four times that in memory.
#include "protocol/kube/object_cache.h"

#include <nlohmann/json.hpp>

#include "base/core/json_text.h"

namespace penstock::protocol::kube {

ObjectCache::Kept ObjectCache::Put(const ObjectMeta& meta, Object object) {
  const Key key(meta.namespace_name, meta.name);
  const auto found = entries_.find(key);
  const bool known = found != entries_.end();
  if (known) found->second.list = list_;
  if (known && found->second.version == meta.version) return Kept::kSame;
  if (known && *found->second.object == *object) {  // all that changed is not kept
    found->second.version = meta.version;
    return Kept::kSame;
  }
  const std::size_t bytes = base::JsonText(*object).size();
  const std::size_t freed = known ? found->second.bytes : 0;
  if ((!known && entries_.size() >= most_objects_) || bytes_ - freed + bytes > most_bytes_)
    return Kept::kNoRoom;
  bytes_ += bytes - freed;
  entries_.insert_or_assign(key, Entry{std::move(object), meta.version, bytes, list_});
  return Kept::kChanged;
}

bool ObjectCache::Remove(const Key& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  bytes_ -= found->second.bytes;
  entries_.erase(found);
  return true;
}

std::vector<ObjectCache::Key> ObjectCache::EndList() {
  std::vector<Key> missing;
  for (const auto& [key, entry] : entries_) {
    if (entry.list != list_) missing.push_back(key);
  }
  for (const Key& key : missing) Remove(key);
  return missing;
}

const Json* ObjectCache::Find(const Key& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second.object.get();
}

}  // namespace penstock::protocol::kube
