#include "adapter/pages/pages.h"

#include <array>
#include <utility>

#include "adapter/pages/page_routes.h"
#include "api/commands.h"
#include "api/listen.h"
#include "protocol/http/accept.h"

namespace penstock::adapter::pages {

namespace {

using node::metrics::Detail;
using node::metrics::PageFormat;
using protocol::http::PageAccess;
using protocol::http::Request;
using protocol::http::Respond;
using protocol::http::Response;
using protocol::http::Text;

/// In the order of preference if the client has none: the form that every reader understands is
/// first.
constexpr std::array<protocol::http::MediaType, 2> kForms = {
    {{"text/plain", "0.0.4"}, {"application/openmetrics-text", "1.0.0"}}};
constexpr std::array<PageFormat, 2> kFormats = {PageFormat::kText, PageFormat::kOpenMetrics};

Response Metrics(const Request& request, const PageSources& sources) {
  const Detail detail = request.identified ? Detail::kProcesses : Detail::kHolders;
  const PageFormat format = kFormats[protocol::http::ChooseType(request.accept, kForms)];
  return {.content_type = std::string(ContentTypeOf(format)),
          .body = sources.metrics(format, detail).text,
          .varies = true};
}

Response State(const Request& request, const PageSources& sources) {
  api::Report report = sources.report();
  if (!request.identified) api::HideProcesses(report);
  return {.content_type = "application/json",
          .body = std::make_shared<const std::string>(api::ToJson(report) + "\n")};
}

Response Judge(const std::string& why_not) {
  return why_not.empty() ? Text(200, "ok\n") : Text(503, why_not + "\n");
}

}  // namespace

Pages::Pages(base::Executor& control, base::Executor& io, PageSources sources)
    : control_(control),
      io_(io),
      sources_(std::make_shared<const PageSources>(std::move(sources))),
      cache_(std::make_shared<PageStateCache>(
          control, PageStateCache::Sources{.state = sources_->page_state,
                                           .history = sources_->page_history})) {}

/// Stops the thread before the data that it serves is destroyed.
Pages::~Pages() { loop_.Stop(); }

/// A page that is rendered on the control loop.
void Pages::Handle(const std::string& path, Make make, PageAccess access) {
  server_->Handle(
      path,
      [&control = control_, sources = sources_, make = std::move(make)](const Request& request,
                                                                        Respond answer) {
        control.Post([request, answer = std::move(answer), sources, make] {
          answer(make(request, *sources));
        });
      },
      access);
}

void Pages::AddPages() {
  Handle("/metrics", Metrics, PageAccess::kGuarded);
  Handle("/debug/state", State, PageAccess::kGuarded);
  for (const char* path : {"/healthz", "/health"})
    server_->Handle(
        path,
        [sources = sources_](const Request&, const Respond& answer) {
          answer(Judge(sources->hangs()));
        },
        PageAccess::kOpen);
  server_->Handle(
      "/readyz",
      [sources = sources_](const Request&, const Respond& answer) {
        const std::string hangs = sources->hangs();
        answer(Judge(hangs.empty() ? sources->not_ready() : hangs));
      },
      PageAccess::kOpen);
  AddPageRoutes(*server_, control_, cache_,
                [this]() -> OtherNodes* { return others_ ? &*others_ : nullptr; });
}

base::Status Pages::Start(const api::HttpConfig& config) {
  ASSIGN(const api::ListenAddress address, api::ParseListen(config.listen));
  if (address.off) return {};
  server_.emplace(loop_, protocol::http::ServerLimits{
                             .connections = static_cast<std::size_t>(config.connections),
                             .deadline = config.deadline});
  AddPages();
  web_config_file_ = config.web_config_file;
  if (!web_config_file_.empty()) Protect(web_config_file_, WebProtection::Until::kClosed);
  auto started = server_->Start({.path = address.path,
                                 .activated = address.systemd,
                                 .host = address.host,
                                 .port = address.port});
  if (started.ok()) {
    where_ = server_->where();
    loop_.Start();
    return {};
  }
  web_.reset();
  server_.reset();
  if (started.error().code() != base::Code::kAlreadyExists) return started;
  return base::Error(started.error().code(),
                     started.error().message() +
                         "; choose another address with --listen (http.listen), or \"off\"");
}

void Pages::Protect(const std::string& file, WebProtection::Until until) {
  web_.emplace(loop_, io_, file, until,
               WebProtection::Callbacks{
                   .protect = [this](auto protection) { server_->Protect(std::move(protection)); },
                   .notify = [this](const auto& status) { protection_status_.Set(status); }});
}

void Pages::Configure(const api::HttpConfig& config, const api::PageConfig& page) {
  if (where_.empty()) return;
  if (page != page_) {
    page_ = page;
    loop_.Post([this, page] {
      others_.reset();
      if (!page.nodes.empty()) others_.emplace(loop_, io_, page);
    });
  }
  if (config.web_config_file == web_config_file_) return;
  web_config_file_ = config.web_config_file;
  loop_.Post([this, file = web_config_file_] {
    web_.reset();
    if (!file.empty()) return Protect(file, WebProtection::Until::kAsBefore);
    server_->Protect({});
    protection_status_.Set(ProtectionStatus{});
  });
}

void Pages::Reload() {
  loop_.Post([this] {
    if (web_) web_->Reload();
  });
}

}  // namespace penstock::adapter::pages
