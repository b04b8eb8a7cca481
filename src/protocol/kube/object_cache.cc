// Counts bytes as text; a Json takes about four times that in memory, in many small pieces.
#include "protocol/kube/object_cache.h"

#include <nlohmann/json.hpp>

#include "base/core/json_text.h"

namespace penstock::protocol::kube {
namespace {

/// Versions of a kind can be compared as numbers of any length (Kubernetes KEP-5504). Of others it
/// is not known.
bool IsOlder(const std::string& version, const std::string& other) {
  const auto is_number = [](const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  };
  return is_number(version) && is_number(other) &&
         std::pair(version.size(), version) < std::pair(other.size(), other);
}

void Pack(Object& object, std::string& text) {
  text = base::JsonText(*object);
  text.shrink_to_fit();
  object.reset();
}

}  // namespace

void ObjectCache::BeginList() {
  ++list_;
  for (auto& [key, entry] : entries_) entry.is_learned = false;
}

ObjectCache::Kept ObjectCache::Put(const ObjectMeta& meta, Object object) {
  const Key key(meta.namespace_name, meta.name);
  const auto found = entries_.find(key);
  const bool known = found != entries_.end();
  if (known) {
    found->second.list = list_;
    if (found->second.is_learned && IsOlder(meta.version, found->second.version))
      return Kept::kSame;
    found->second.is_learned = false;
  }
  if (known && found->second.version == meta.version) return Kept::kSame;
  Entry entry{.object = std::move(object), .text = {}, .version = meta.version, .list = list_};
  if (packed_) Pack(entry.object, entry.text);
  if (known && HasContentOf(found->second, entry)) {  // all that changed is not kept
    found->second.version = meta.version;
    return Kept::kSame;
  }
  entry.bytes = packed_ ? entry.text.size() : base::JsonText(*entry.object).size();
  const std::size_t freed = known ? found->second.bytes : 0;
  if ((!known && entries_.size() >= most_objects_) || bytes_ - freed + entry.bytes > most_bytes_)
    return Kept::kNoRoom;
  bytes_ += entry.bytes - freed;
  entries_.insert_or_assign(key, std::move(entry));
  return Kept::kChanged;
}

bool ObjectCache::HasContentOf(const Entry& one, const Entry& other) const {
  return packed_ ? one.text == other.text : *one.object == *other.object;
}

ObjectCache::Kept ObjectCache::Learn(const ObjectMeta& meta, Object object) {
  const auto found = entries_.find({meta.namespace_name, meta.name});
  if (found == entries_.end() || IsOlder(meta.version, found->second.version)) return Kept::kSame;
  const Entry before = found->second;
  found->second.version.clear();  // a watch of metadata has shown less of the same version
  const Kept kept = Put(meta, std::move(object));
  Entry& entry = entries_.at(found->first);
  entry.list = before.list;  // whether the current list has it is yet to be seen
  entry.is_learned = true;
  if (kept == Kept::kNoRoom) entry = before;
  return kept;
}

bool ObjectCache::Remove(const ObjectMeta& deleted) {
  const Key key(deleted.namespace_name, deleted.name);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  if (found->second.is_learned && IsOlder(deleted.version, found->second.version)) return false;
  return Erase(key);
}

bool ObjectCache::Erase(const Key& key) {
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
  for (const Key& key : missing) Erase(key);
  return missing;
}

Object ObjectCache::Find(const Key& key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  const Entry& entry = found->second;
  return packed_ ? std::make_shared<const Json>(base::ParseJson<Json>(entry.text)) : entry.object;
}

std::string ObjectCache::VersionOf(const Key& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? "" : found->second.version;
}

}  // namespace penstock::protocol::kube
