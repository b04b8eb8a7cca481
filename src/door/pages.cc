// The pages that scrapers, probes and people read over HTTP. Changes nothing.
#include "door/pages.h"

#include "api/listen.h"
#include "node/metrics/exposition.h"

namespace penstock::door {

namespace {

using edge::http::Response;

Response Ready(const std::string& not_ready) {
  return not_ready.empty() ? Response{.body = "ok\n"} : Response{.status = 503, .body = not_ready + "\n"};
}

}  // namespace

Pages::Pages(os::Loop& loop, PageSources sources) : server_(loop) {
  server_.Handle("/metrics", [metrics = std::move(sources.metrics)] {
    return Response{.content_type = std::string(node::metrics::kContentType), .body = metrics()};
  });
  server_.Handle("/debug/state",
                 [report = std::move(sources.report)] { return Response{.content_type = "application/json", .body = report() + "\n"}; });
  server_.Handle("/readyz", [not_ready = std::move(sources.not_ready)] { return Ready(not_ready()); });
  server_.Handle("/healthz", [] { return Response{.body = "ok\n"}; });
}

base::Status Pages::Start(std::string_view listen) {
  ASSIGN(const api::ListenAddress address, api::ParseListen(listen));
  if (address.off) return {};
  auto started = server_.Start({.path = address.path, .host = address.host, .port = address.port});
  if (started.ok() || started.error().code() != base::Code::kAlreadyExists) return started;
  return base::Error(started.error().code(),
                     started.error().message() + "; choose another address with --listen (http.listen), or \"off\"");
}

}  // namespace penstock::door
