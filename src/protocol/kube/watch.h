// Decodes what a list and a watch send. Checks their frame strictly and reads only the metadata of
// an object.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/core/result.h"

namespace penstock::protocol::kube {

using Json = nlohmann::json;
using Object = std::shared_ptr<const Json>;

/// An object's own metadata; `kind` may be empty (in a list, the list has it).
struct ObjectMeta {
  std::string kind, namespace_name, name, version;
};
/// kDataLoss if metadata.name or resourceVersion is missing.
base::Result<ObjectMeta> MetaOf(const Json& object);
/// The object without the values at these JSON pointers.
Object WithoutUnread(Json object, const std::vector<std::string>& unread);

/// One line of a watch.
struct WatchEvent {
  enum class Type { kAdded, kModified, kDeleted, kBookmark, kError };
  Type type = Type::kError;
  Object object;
  ObjectMeta meta;         ///< of a bookmark only the version; of an error nothing
  bool ends_list = false;  ///< a bookmark after the last of the initial events
  int code = 0;            ///< of an error, an HTTP status
  std::string message;     ///< of an error
};

/// Of metadata.managedFields, which anyone who may write an object can make as deep as they like.
enum class ManagedFields { kLeftOut, kKept };

/// Decodes a line; leaves out metadata.managedFields, or what is too deep of them, and what the
/// JSON pointers in `without` name. kDataLoss if it is not JSON, too deep, or not a watch event.
base::Result<WatchEvent> DecodeEvent(std::string_view line,
                                     const std::vector<std::string>& without = {},
                                     ManagedFields managed_fields = ManagedFields::kLeftOut);

/// One page of a list. Its objects have apiVersion and kind, which the server omits.
struct ListPage {
  std::string kind;  ///< of the objects; "" if the list does not say
  std::vector<Object> objects;
  std::string version, next;  ///< resourceVersion, continue
};
base::Result<ListPage> DecodePage(std::string_view body,
                                  const std::vector<std::string>& without = {},
                                  ManagedFields managed_fields = ManagedFields::kLeftOut);

/// Whether an error says that a resourceVersion is from the server's future: the server came back
/// with an older state.
bool IsFromTheFuture(std::string_view message);

}  // namespace penstock::protocol::kube
