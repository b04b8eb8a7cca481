// What an API server, or whoever stands between, sends on a watch and as a list: the lines go through a whole informer.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/executor.h"
#include "edge/kube/informer.h"
#include "edge/kube/watch.h"

namespace {

using namespace penstock;
using namespace penstock::edge::kube;

constexpr std::size_t kMostObjects = 3, kMostBytes = 4096;

void Require(bool held) {
  if (!held) std::abort();
}

// A server that has nothing to say but the input.
class Parrot final : public Api {
 public:
  explicit Parrot(std::string_view input) : input_(input) {}

  base::ManualExecutor& executor() override { return executor_; }

  void Do(Call, Done done) override {
    executor_.Post([this, done = std::move(done)] { done(Answer{200, std::string(input_)}); });
  }

  std::unique_ptr<Stream> Open(Call call, std::function<void(std::string_view)> line, std::function<void(base::Status)>) override {
    if (call.query.contains("sendInitialEvents")) ++lists;
    line_ = std::make_shared<std::function<void(std::string_view)>>(std::move(line));
    return std::make_unique<Opened>(line_);
  }

  // To the stream that is open; to none where the informer waits.
  void Say(std::string_view text) {
    if (const auto line = line_; line && *line) (*line)(text);
  }

  int lists = 0;

 private:
  struct Opened final : Stream {
    explicit Opened(std::shared_ptr<std::function<void(std::string_view)>> its) : line(std::move(its)) {}
    ~Opened() override { *line = nullptr; }
    std::shared_ptr<std::function<void(std::string_view)>> line;
  };

  std::string_view input_;
  base::ManualExecutor executor_;
  std::shared_ptr<std::function<void(std::string_view)>> line_;
};

void Watch(std::string_view input) {
  Parrot api(input);
  Informer::Options options{
      .resource = {"", "v1", "nodes"}, .without = {"/status/images"}, .most_objects = kMostObjects, .most_bytes = kMostBytes};
  int known = 0;
  Informer* its = nullptr;
  Informer informer(
      api, options,
      {.changed =
           [&](const Json& object) {
             const auto meta = MetaOf(object);
             Require(meta.ok() && its->Find(meta->namespace_name, meta->name) == &object && !object["metadata"].contains("managedFields"));
             ++known;
           },
       .removed = [&](const std::string& space, const std::string& name) { Require(known > 0 && its->Find(space, name) == nullptr); }});
  its = &informer;
  informer.Start();
  api.executor().RunUntilIdle();
  for (std::size_t begin = 0; begin <= input.size();) {
    const std::size_t end = std::min(input.find('\n', begin), input.size());
    api.Say(input.substr(begin, end - begin));
    api.executor().Advance(std::chrono::seconds(31));  // longer than any wait after an end
    Require(informer.size() <= kMostObjects && informer.bytes() <= kMostBytes);
    begin = end + 1;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto page = DecodePage(input, {"/status/images"}); page.ok()) {
    for (const Object& object : page->objects) Require(MetaOf(*object).ok());
  }
  Watch(input);
  return 0;
}
