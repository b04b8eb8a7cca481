// What a list and a watch say, decoded. Strict about their own frame, knows of an object only its metadata.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/core/result.h"

namespace penstock::edge::kube {

using Json = nlohmann::json;
using Object = std::shared_ptr<const Json>;

/// An object's own metadata; `kind` may be empty (in a list it is the list's).
struct ObjectMeta {
  std::string kind, namespace_name, name, version;
};
/// kDataLoss where it has no metadata.name or no resourceVersion.
base::Result<ObjectMeta> MetaOf(const Json& object);

/// One line of a watch.
struct WatchEvent {
  enum class Type { kAdded, kModified, kDeleted, kBookmark, kError };
  Type type = Type::kError;
  Object object;
  ObjectMeta meta;         ///< of a bookmark the version only; of an error nothing
  bool ends_list = false;  ///< a bookmark after the last of the initial events
  int code = 0;            ///< of an error, as HTTP has it
  std::string message;     ///< of an error
};

/// Decodes a line; metadata.managedFields and what the JSON pointers in `without` name is left out of the object. kDataLoss where it is no
/// JSON, too deep, or no watch event.
base::Result<WatchEvent> DecodeEvent(std::string_view line, const std::vector<std::string>& without = {});

/// One page of a list. Its objects have apiVersion and kind, which the server leaves out.
struct Page {
  std::string kind;  ///< of the objects; "" where the list does not tell
  std::vector<Object> objects;
  std::string version, next;  ///< resourceVersion, continue
};
base::Result<Page> DecodePage(std::string_view body, const std::vector<std::string>& without = {});

/// Whether an error says that a resourceVersion is from the server's future: it came back with an older state.
bool IsFromTheFuture(std::string_view message);

}  // namespace penstock::edge::kube
