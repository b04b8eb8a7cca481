#include "app/penstock/driver/safe_load.h"

#include <nlohmann/json.hpp>

#include "analysis/objects.h"
#include "api/compat/nvidia/driver_names.h"

namespace penstock::app {
namespace {

using base::Code;

constexpr base::Duration kSafeLoadPoll = std::chrono::seconds(2);
constexpr char kManager[] = "penstock-driver-prepare";

bool MayPass(const base::Error& error) {
  return error.code() == Code::kUnavailable || error.code() == Code::kDeadlineExceeded ||
         error.code() == Code::kAborted || error.code() == Code::kResourceExhausted ||
         error.code() == Code::kUnauthenticated;
}

/// Repeats a call while it fails for reasons that may pass.
base::Result<Json> Persist(const std::function<base::Result<Json>()>& call,
                           const std::function<void(const std::string&)>& say,
                           const std::function<void(base::Duration)>& sleep) {
  for (;;) {
    auto answer = call();
    if (answer.ok() || !MayPass(answer.error())) return answer;
    say("waiting for the API server: " + answer.error().message());
    sleep(kSafeLoadPoll);
  }
}

}  // namespace

base::Status AwaitSafeLoad(const ApiServer& server, const std::string& node,
                           const std::function<void(const std::string&)>& say,
                           const std::function<void(base::Duration)>& sleep) {
  const std::string key(api::compat::kSafeLoad);
  const Json patch = {{"metadata", {{"annotations", {{key, "true"}}}}}};
  const auto marked = Persist(
      [&] {
        return protocol::kube::Parse(server(protocol::kube::Patch(
            kinds::Nodes(), "", node, protocol::kube::kMergePatch, patch, kManager)));
      },
      say, sleep);
  if (!marked.ok()) return marked.error().Within("annotate Node " + node);
  for (;;) {
    const auto found =
        Persist([&] { return GetObject(server, kinds::Nodes(), "", node); }, say, sleep);
    if (!found.ok()) return found.error().Within("read Node " + node);
    if (analysis::TextAt(*found, {"metadata", "annotations", key}).empty()) return {};
    say("waiting until the operator has emptied the node and removed the annotation " + key);
    sleep(kSafeLoadPoll);
  }
}

}  // namespace penstock::app
