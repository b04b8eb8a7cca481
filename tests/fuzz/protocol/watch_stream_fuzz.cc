// Fuzzes what an API server or a proxy sends on a watch and as a list: the lines pass through a
// whole informer.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "../oracle.h"
#include "../scripted_api.h"
#include "protocol/kube/informer.h"
#include "protocol/kube/watch.h"

namespace {

using namespace penstock;
using namespace penstock::protocol::kube;

using fuzz::Require;

constexpr std::size_t kMostObjects = 3, kMostBytes = 4096;

void Watch(std::string_view input) {
  fuzz::ScriptedApi api(input);
  Informer::Options options{.resource = {"", "v1", "nodes"},
                            .without = {"/status/images"},
                            .most_objects = kMostObjects,
                            .most_bytes = kMostBytes};
  int known = 0;
  Informer* its = nullptr;
  Informer informer(api, options,
                    {.changed =
                         [&](const Json& object) {
                           const auto meta = MetaOf(object);
                           Require(meta.ok() &&
                                   its->Find(meta->namespace_name, meta->name).get() == &object &&
                                   !object["metadata"].contains("managedFields"));
                           ++known;
                         },
                     .removed =
                         [&](const std::string& space, const std::string& name) {
                           Require(known > 0 && its->Find(space, name) == nullptr);
                         }});
  its = &informer;
  informer.Start();
  api.executor().RunUntilIdle();
  for (std::size_t begin = 0; begin <= input.size();) {
    const std::size_t end = std::min(input.find('\n', begin), input.size());
    api.Send("/api/v1/nodes", input.substr(begin, end - begin));
    api.executor().Advance(std::chrono::seconds(31));  // longer than any back-off
    Require(informer.size() <= kMostObjects && informer.bytes() <= kMostBytes);
    begin = end + 1;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = fuzz::Text(data, size);
  if (const auto page = DecodePage(input, {"/status/images"}); page.ok()) {
    for (const Object& object : page->objects) Require(MetaOf(*object).ok());
  }
  Require(DecodeEvent(input).ok() == DecodeEvent(input, {}, ManagedFields::kKept).ok());
  Watch(input);
  return 0;
}
