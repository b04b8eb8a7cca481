#include "app/operator/operator_program.h"

#include <array>
#include <climits>
#include <csignal>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "api/listen.h"
#include "app/operator/metrics_page.h"
#include "backend/config_terms.h"
#include "base/core/strings.h"
#include "base/log.h"
#include "operator/operator.h"
#include "os/core/fd.h"
#include "os/loop.h"
#include "os/trim.h"
#include "protocol/http/server.h"
#include "protocol/kube/client.h"
#include "protocol/kube/lease.h"

namespace penstock::app {

using namespace std::chrono_literals;

namespace {

constexpr base::Duration kAccessPoll = 10s;
/// Long intervals: the renewal of the Lease is the only write of an idle cluster. A successor waits
/// half a minute after a crash, and not at all after a stop on request.
constexpr base::Duration kLease = 30s, kRenewWithin = 20s, kRetry = 5s;
constexpr base::Duration kRelease = 1s;  // for the release of the Lease to be sent
// Between two looks at spare memory.
constexpr base::Duration kGiveBack = 10s, kGiveBackSoon = 3s;

std::string HostName() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

/// Two processes of one name must not both lead.
std::string Unique(const std::string& name) {
  return name + "_" + std::to_string(std::random_device{}());
}

class OperatorProgram {
 public:
  explicit OperatorProgram(const OperatorCommandLine& line)
      : line_(line), host_(line.identity.empty() ? HostName() : line.identity) {}

  int Run() {
    for (auto step : {&OperatorProgram::WatchSignals, &OperatorProgram::OpenPages})
      if (const Status done = (this->*step)(); !done.ok()) {
        base::Log(base::kError, "cannot start", {{"why", done.error().message()}});
        return 1;
      }
    loop_.Post([this] {
      Connect();
      GiveBackMemory();
    });
    loop_.Run();
    base::Log(base::kInfo, "stopped");
    return 0;
  }

 private:
  Status WatchSignals() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM}) sigaddset(&signals, signal);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    signals_.Reset(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) return base::ErrnoError(errno, "signalfd");
    return loop_.Watch(signals_.get(), EPOLLIN, [this](std::uint32_t) { Stop(); });
  }

  void Stop() {
    signalfd_siginfo signal{};
    if (::read(signals_.get(), &signal, sizeof signal) != sizeof signal) return;
    base::Log(base::kInfo, "stop requested by a signal");
    operator_.reset();
    const bool led = election_ && election_->leads();
    election_.reset();  // releases the Lease
    loop_.PostAfter(led ? kRelease : base::Duration{}, [this] {
      client_.reset();
      server_.reset();
      loop_.Stop();
    });
  }

  /// After changes of many nodes.
  void GiveBackMemory() {
    const bool much = memory_.GiveBack();
    loop_.PostAfter(much ? kGiveBackSoon : kGiveBack, [this] { GiveBackMemory(); });
  }

  Status OpenPages() {
    ASSIGN(const api::ListenAddress address, api::ParseListen(line_.listen));
    if (address.off) return {};
    using protocol::http::PageAccess;
    using protocol::http::Request;
    using protocol::http::Respond;
    server_.emplace(loop_);
    const auto alive = [](const Request&, const Respond& answer) {
      answer(protocol::http::Text(200, "ok\n"));
    };
    server_->Handle("/healthz", alive, PageAccess::kOpen);
    server_->Handle("/readyz", alive, PageAccess::kOpen);
    server_->Handle("/metrics", [this](const Request&, const Respond& answer) {
      answer({.content_type = "text/plain; version=0.0.4; charset=utf-8",
              .body = std::make_shared<const std::string>(Metrics())});
    });
    return server_->Start({.path = address.path,
                           .activated = address.systemd,
                           .host = address.host,
                           .port = address.port});
  }

  std::string Metrics() const {
    const auto requests = client_ ? client_->requests() : protocol::kube::Requests{};
    if (!operator_) return OperatorMetrics(nullptr, requests);
    const cluster::Operator::Numbers numbers = operator_->numbers();
    return OperatorMetrics(&numbers, requests);
  }

  /// Files of a ServiceAccount may be mounted late.
  void Connect() {
    auto access = protocol::kube::FindAccess(line_.kubeconfig);
    if (!access.ok()) {
      base::Log(base::kWarn, "no access to a cluster", {{"why", access.error().message()}});
      loop_.PostAfter(kAccessPoll, [this] { Connect(); });
      return;
    }
    base::Log(base::kInfo, "cluster access configured",
              {{"server", access->server}, {"access", access->from}});
    namespace_ = !line_.namespace_name.empty()    ? line_.namespace_name
                 : access->namespace_name.empty() ? "default"
                                                  : access->namespace_name;
    client_.emplace(loop_, *std::move(access),
                    protocol::kube::Client::Options{
                        .user_agent = std::string("penstock-operator/") + PENSTOCK_VERSION});
    Compete();
  }

  void Compete() {
    election_.emplace(*client_,
                      protocol::kube::LeaderElection::Options{.namespace_name = namespace_,
                                                              .name = "penstock-operator",
                                                              .identity = Unique(host_),
                                                              .lease = kLease,
                                                              .renew_within = kRenewWithin,
                                                              .retry = kRetry},
                      protocol::kube::LeaderElection::Callbacks{
                          .leading = [this] { Lead(); },
                          .stopped = [this](const std::string& why) { StepDown(why); }});
    election_->Start();
  }

  void Lead() {
    base::Log(base::kInfo, "this operator leads", {{"namespace", namespace_}});
    cluster::Operator::Options options{.installation = {.namespace_name = namespace_,
                                                        .image = line_.agent_image,
                                                        .pull_policy = line_.pull_policy,
                                                        .service_account = line_.service_account},
                                       .agent_rights = {.pod_labels = !line_.no_pod_labels},
                                       .terms = backend::ConfigTerms(),
                                       .apply_definitions = !line_.no_definitions,
                                       .host = host_};
    for (const std::string& name : base::Split(line_.pull_secrets, ','))
      if (!name.empty()) options.installation.pull_secrets.push_back(name);
    operator_.emplace(*client_, std::move(options));
    operator_->Start();
  }

  /// Another may lead from now on; this one competes again.
  void StepDown(const std::string& why) {
    base::Log(base::kWarn, "this operator no longer leads", {{"why", why}});
    loop_.Post([this] {
      if (!election_ || !election_->leads()) operator_.reset();
    });
  }

  const OperatorCommandLine& line_;
  const std::string host_;
  std::string namespace_;
  os::SpareMemory memory_;
  os::UniqueFd signals_;
  os::Loop loop_{"operator"};
  std::optional<protocol::http::Server> server_;
  std::optional<protocol::kube::Client> client_;
  std::optional<cluster::Operator> operator_;
  std::optional<protocol::kube::LeaderElection> election_;
};

}  // namespace

int RunOperator(const OperatorCommandLine& line) { return OperatorProgram(line).Run(); }

}  // namespace penstock::app
