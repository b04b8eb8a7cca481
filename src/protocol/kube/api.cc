#include "protocol/kube/api.h"

#include <nlohmann/json.hpp>

#include "base/core/json_text.h"

namespace penstock::protocol::kube {
namespace {

std::string NameOf(const Json& object) {
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return {};
  const auto name = metadata->find("name");
  return name != metadata->end() && name->is_string() ? name->get<std::string>() : std::string();
}

// dump would throw on text that is not UTF-8: it is replaced, and the server says what is wrong.
std::string Text(const Json& json) { return base::JsonText(json); }

}  // namespace

std::string Resource::Path(std::string_view namespace_name, std::string_view name,
                           std::string_view subresource) const {
  std::string path = group.empty() ? "/api/" + version : "/apis/" + group + "/" + version;
  if (!namespace_name.empty()) path.append("/namespaces/").append(namespace_name);
  path += "/" + plural;
  if (!name.empty()) path.append("/").append(name);
  if (!subresource.empty()) path.append("/").append(subresource);
  return path;
}

ApiCall Apply(const Resource& resource, std::string_view namespace_name, const Json& object,
              std::string_view field_manager, bool force, std::string_view subresource) {
  ApiCall call;
  call.method = "PATCH";
  call.path = resource.Path(namespace_name, NameOf(object), subresource);
  call.query = {{"fieldManager", std::string(field_manager)}};
  if (force) call.query["force"] = "true";
  call.content_type = kApplyPatch;
  call.body = Text(object);
  return call;
}

ApiCall Get(const Resource& resource, std::string_view namespace_name, std::string_view name) {
  ApiCall call;
  call.path = resource.Path(namespace_name, name);
  return call;
}

ApiCall Create(const Resource& resource, std::string_view namespace_name, const Json& object,
               std::string_view field_manager) {
  ApiCall call;
  call.method = "POST";
  call.path = resource.Path(namespace_name);
  call.query = {{"fieldManager", std::string(field_manager)}};
  call.content_type = "application/json";
  call.body = Text(object);
  return call;
}

ApiCall Patch(const Resource& resource, std::string_view namespace_name, std::string_view name,
              std::string_view content_type, const Json& patch, std::string_view field_manager,
              std::string_view subresource) {
  ApiCall call;
  call.method = "PATCH";
  call.path = resource.Path(namespace_name, name, subresource);
  call.query = {{"fieldManager", std::string(field_manager)}};
  call.content_type = content_type;
  call.body = Text(patch);
  return call;
}

ApiCall Delete(const Resource& resource, std::string_view namespace_name, std::string_view name,
               std::string_view uid) {
  ApiCall call;
  call.method = "DELETE";
  call.path = resource.Path(namespace_name, name);
  if (uid.empty()) return call;
  call.content_type = "application/json";
  call.body =
      Text({{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"uid", uid}}}});
  return call;
}

base::Result<Json> Parse(const base::Result<ApiResponse>& answer) {
  if (!answer.ok()) return answer.error();
  Json json = base::ParseJson<Json>(answer->body);
  if (!json.is_discarded()) return json;
  return base::Error(base::Code::kDataLoss, "the API server's answer is not JSON (" +
                                                std::to_string(answer->body.size()) + " bytes)");
}

}  // namespace penstock::protocol::kube
