// Nothing here throws: every access checks the type first.
#include "protocol/kube/watch.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace penstock::protocol::kube {
namespace {

// Copying and comparing Json is recursive; an API server itself refuses much less deep objects of
// its own kinds.
constexpr int kMaxDepth = 128;
constexpr int kNowhere = std::numeric_limits<int>::max();

const Json* Member(const Json& value, const char* name) {
  if (!value.is_object()) return nullptr;
  const auto found = value.find(name);
  return found == value.end() ? nullptr : &*found;
}

std::string Text(const Json& value, const char* name) {
  const Json* member = Member(value, name);
  return member != nullptr && member->is_string() ? member->get<std::string>() : std::string();
}

Error Malformed(std::string_view what, std::string_view text) {
  constexpr std::size_t kShown = 80;
  std::string shown(text.substr(0, kShown));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return {Code::kDataLoss, std::string(what) + ": " + shown + (text.size() > kShown ? "…" : "")};
}

/// Builds a document from what nlohmann's parser reads, as that one does itself. Not by a callback
/// of it: at the end of each object, a parser with one goes through all elements of what the object
/// is in, and anyone can write a long list.
class Reader {
 public:
  Reader(Json& root, ManagedFields managed_fields)
      : document_(root, false), leaves_out_(managed_fields == ManagedFields::kLeftOut) {}

  bool null() { return IsLeftOut() || document_.null(); }
  bool boolean(bool value) { return IsLeftOut() || document_.boolean(value); }
  bool number_integer(std::int64_t value) { return IsLeftOut() || document_.number_integer(value); }
  bool number_unsigned(std::uint64_t value) {
    return IsLeftOut() || document_.number_unsigned(value);
  }
  bool number_float(double value, const std::string& text) {
    return IsLeftOut() || document_.number_float(value, text);
  }
  bool string(std::string& value) { return IsLeftOut() || document_.string(value); }
  bool binary(Json::binary_t& value) { return IsLeftOut() || document_.binary(value); }
  bool start_object(std::size_t size) {
    return Begin([&] { return document_.start_object(size); });
  }
  bool start_array(std::size_t size) {
    return Begin([&] { return document_.start_array(size); });
  }
  bool end_object() { return End() || document_.end_object(); }
  bool end_array() { return End() || document_.end_array(); }

  bool key(std::string& name) {
    if (left_out_ > 0) return true;
    if (depth_ > managed_at_) return document_.key(name);
    const bool begins = name == "managedFields" && in_metadata_[Index(depth_ - 1)];
    in_metadata_[Index(depth_)] = name == "metadata";
    managed_at_ = begins ? depth_ : kNowhere;
    next_is_left_out_ = begins && leaves_out_;
    return next_is_left_out_ || document_.key(name);
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) {
    return false;
  }
  bool too_deep() const { return too_deep_; }

 private:
  static std::size_t Index(int depth) { return static_cast<std::size_t>(depth); }

  bool IsLeftOut() { return std::exchange(next_is_left_out_, false) || left_out_ > 0; }

  template <typename InDocument>
  bool Begin(InDocument begin) {
    ++depth_;
    if (IsLeftOut()) {
      ++left_out_;
      return true;
    }
    if (depth_ <= kMaxDepth) {
      in_metadata_[Index(depth_)] = false;  // an array has no key
      return begin();
    }
    too_deep_ = depth_ <= managed_at_;
    if (too_deep_) return false;
    ++left_out_;
    return document_.null();
  }

  /// Whether what ends was left out.
  bool End() {
    --depth_;
    if (left_out_ > 0) {
      --left_out_;
      return true;
    }
    if (depth_ < managed_at_) managed_at_ = kNowhere;
    return false;
  }

  nlohmann::detail::json_sax_dom_parser<Json> document_;
  const bool leaves_out_;
  int depth_ = 0;              // objects and arrays that are open
  int left_out_ = 0;           // of these, so many are left out
  int managed_at_ = kNowhere;  // what is deeper is inside of managed fields
  bool next_is_left_out_ = false, too_deep_ = false;
  // Whether the key that is open at this depth is "metadata".
  std::array<bool, kMaxDepth + 1> in_metadata_{};
};

// metadata.managedFields is as large as all the rest, so the parser skips it.
base::Result<Json> Read(std::string_view text, ManagedFields managed_fields) {
  Json value;
  Reader reader(value, managed_fields);
  const bool is_json = Json::sax_parse(text.begin(), text.end(), &reader);
  if (reader.too_deep()) return Malformed("the API server sent JSON that is too deep", text);
  if (!is_json || !value.is_object()) return Malformed("the API server sent no JSON object", text);
  return value;
}

void Erase(Json& object, const std::string& pointer) {
  Json* at = &object;
  std::size_t begin = 1;
  for (std::size_t end; (end = pointer.find('/', begin)) != std::string::npos; begin = end + 1) {
    const auto found = at->is_object() ? at->find(pointer.substr(begin, end - begin)) : at->end();
    if (found == at->end()) return;
    at = &*found;
  }
  if (at->is_object()) at->erase(pointer.substr(begin));
}

bool TypeOf(const std::string& name, WatchEvent::Type& type) {
  using Type = WatchEvent::Type;
  static constexpr std::array<std::pair<std::string_view, Type>, 5> kTypes = {
      {{"ADDED", Type::kAdded},
       {"MODIFIED", Type::kModified},
       {"DELETED", Type::kDeleted},
       {"BOOKMARK", Type::kBookmark},
       {"ERROR", Type::kError}}};
  for (const auto& [its_name, its_type] : kTypes) {
    if (its_name != name) continue;
    type = its_type;
    return true;
  }
  return false;
}

void ReadError(const Json& status, WatchEvent& event) {
  event.message = Text(status, "message");
  if (const Json* code = Member(status, "code"); code != nullptr && code->is_number_integer())
    event.code = code->get<int>();
}

base::Status ReadBookmark(const Json& object, WatchEvent& event) {
  const Json* metadata = Member(object, "metadata");
  event.meta.version = metadata == nullptr ? "" : Text(*metadata, "resourceVersion");
  if (event.meta.version.empty())
    return Error(Code::kDataLoss, "the API server sent a bookmark without resourceVersion");
  const Json* annotations = Member(*metadata, "annotations");
  event.ends_list =
      annotations != nullptr && Text(*annotations, "k8s.io/initial-events-end") == "true";
  return {};
}

}  // namespace

Object WithoutUnread(Json object, const std::vector<std::string>& unread) {
  for (const std::string& pointer : unread) Erase(object, pointer);
  return std::make_shared<const Json>(std::move(object));
}

base::Result<ObjectMeta> MetaOf(const Json& object) {
  const Json* metadata = Member(object, "metadata");
  if (metadata == nullptr)
    return Error(Code::kDataLoss, "the API server sent an object without metadata");
  ObjectMeta meta{Text(object, "kind"), Text(*metadata, "namespace"), Text(*metadata, "name"),
                  Text(*metadata, "resourceVersion")};
  if (meta.name.empty() || meta.version.empty())
    return Error(Code::kDataLoss,
                 "the API server sent an object without metadata.name or metadata.resourceVersion");
  return meta;
}

base::Result<WatchEvent> DecodeEvent(std::string_view line, const std::vector<std::string>& without,
                                     ManagedFields managed_fields) {
  ASSIGN(Json frame, Read(line, managed_fields));
  WatchEvent event;
  const auto object = frame.find("object");
  if (object == frame.end() || !object->is_object() || !TypeOf(Text(frame, "type"), event.type))
    return Malformed("the API server sent a line that is not a watch event", line);
  if (event.type == WatchEvent::Type::kError) {
    ReadError(*object, event);
    return event;
  }
  if (event.type == WatchEvent::Type::kBookmark) {
    TRY(ReadBookmark(*object, event));
    return event;
  }
  ASSIGN(event.meta, MetaOf(*object));
  event.object = WithoutUnread(std::move(*object), without);
  return event;
}

base::Result<ListPage> DecodePage(std::string_view body, const std::vector<std::string>& without,
                                  ManagedFields managed_fields) {
  ASSIGN(Json list, Read(body, managed_fields));
  ListPage page;
  const std::string kind = Text(list, "kind"), api_version = Text(list, "apiVersion");
  const auto items = list.find("items");
  const Json* metadata = Member(list, "metadata");
  if (!kind.ends_with("List") || metadata == nullptr || items == list.end() ||
      !(items->is_array() || items->is_null()))
    return Malformed("the API server did not answer a list request with a list", body);
  page.kind = kind.substr(0, kind.size() - 4);
  page.version = Text(*metadata, "resourceVersion");
  page.next = Text(*metadata, "continue");
  if (page.version.empty())
    return Error(Code::kDataLoss, "the API server sent a list without resourceVersion");
  for (Json& item : *items) {
    TRY(MetaOf(item));
    if (!page.kind.empty() && !item.contains("kind")) item["kind"] = page.kind;
    if (!item.contains("apiVersion")) item["apiVersion"] = api_version;
    page.objects.push_back(WithoutUnread(std::move(item), without));
  }
  return page;
}

bool IsFromTheFuture(std::string_view message) {
  return message.find("Too large resource version") != std::string_view::npos;
}

}  // namespace penstock::protocol::kube
