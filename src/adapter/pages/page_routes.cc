#include "adapter/pages/page_routes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "adapter/pages/page_access.h"
#include "adapter/pages/page_files.h"
#include "api/page_state.h"
#include "base/core/strings.h"
#include "protocol/http/query.h"

namespace penstock::adapter::pages {

namespace {

using api::PageDetail;
using protocol::http::QueryEncoded;
using protocol::http::QueryValue;
using protocol::http::Request;
using protocol::http::Respond;
using protocol::http::Response;

constexpr std::string_view kIndex = "index.html";

/// "0.1.0-1f3a…": another one means that browsers must load the page again.
std::string Build() { return std::string(PENSTOCK_VERSION) + "-" + std::string(PageFilesHash()); }

std::string ContentTypeOf(std::string_view name) {
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  return name.ends_with(".svg") ? "image/svg+xml" : "text/html; charset=utf-8";
}

/// Copied for each reader: the memory is needed only while the file is sent.
Response FileResponse(const PageFile& file) {
  std::string content(file.content);
  constexpr std::string_view kMark = "@BUILD@";
  if (const std::size_t at = content.find(kMark); file.name == kIndex && at != std::string::npos)
    content.replace(at, kMark.size(), Build());
  Response response{.content_type = ContentTypeOf(file.name),
                    .body = std::make_shared<const std::string>(std::move(content)),
                    .fields = PageFields(),
                    .tag = Build(),
                    .kept = true};
  return response;
}

/// Process ids and command lines are for identified clients; an agent that asks for a reader who
/// is not identified there asks for less.
PageDetail DetailFor(const Request& request) {
  return request.identified && QueryValue(request.query, "detail") != "holders"
             ? PageDetail::kProcesses
             : PageDetail::kHolders;
}

std::size_t FromOf(const Request& request) {
  return base::ParseUint(QueryValue(request.query, "from").value_or("0")).value_or(0);
}

/// The document in the form in which another node is asked for it.
std::string Canonical(const std::string& name, const Request& request) {
  std::string document = name;
  char separator = '?';
  const auto add = [&](std::string_view parameter, const std::string& value) {
    document += std::exchange(separator, '&') + std::string(parameter) + "=" + QueryEncoded(value);
  };
  if (name == "holders") add("device", QueryValue(request.query, "device").value_or(""));
  if (name == "holders" || name == "queue") add("from", std::to_string(FromOf(request)));
  if (name != "history" && DetailFor(request) == PageDetail::kHolders) add("detail", "holders");
  return document;
}

}  // namespace

void AddPageRoutes(protocol::http::Server& server, base::Executor& control,
                   std::shared_ptr<PageStateCache> cache, std::function<OtherNodes*()> others) {
  const auto handle = [&server](const std::string& path, auto handler) {
    server.Handle(path, [handler](const Request& request, const Respond& answer) {
      if (auto refused = RefusePage(request)) return answer(*std::move(refused));
      handler(request, answer);
    });
  };
  for (const PageFile& file : PageFiles())
    handle(file.name == kIndex ? "/" : "/ui/" + std::string(file.name),
           [&file](const Request&, const Respond& answer) { answer(FileResponse(file)); });

  // A document about this node, which `make` renders on the control executor, or about another.
  const auto document = [&](const std::string& name, auto make) {
    handle("/ui/" + name,
           [&control, cache, others, name, make](const Request& request, const Respond& answer) {
             OtherNodes* nodes = others();
             if (const auto node = QueryValue(request.query, "node")) {
               const auto number = base::ParseUint(*node);
               if (nodes != nullptr && number)
                 return nodes->Get(*number, Canonical(name, request), answer);
               return answer(PageText(404, "this node is not configured\n"));
             }
             control.Post([cache, make, request, answer,
                           names = nodes != nullptr ? nodes->names() : std::vector<std::string>()] {
               answer(make(*cache, request, names));
             });
           });
  };
  using Names = std::vector<std::string>;
  document("state", [](PageStateCache& state, const Request& request, const Names& names) {
    return state.State(DetailFor(request), Build(), names);
  });
  document("history",
           [](PageStateCache& state, const Request&, const Names&) { return state.History(); });
  document("holders", [](PageStateCache& state, const Request& request, const Names&) {
    return state.Holders(DetailFor(request), QueryValue(request.query, "device").value_or(""),
                         FromOf(request));
  });
  document("queue", [](PageStateCache& state, const Request& request, const Names&) {
    return state.Queue(DetailFor(request), FromOf(request));
  });
}

}  // namespace penstock::adapter::pages
