// Runs one EngineConfigurator for each engine process and desired setup.
#include "adapter/kubelet/engine_reconciler.h"

#include <optional>
#include <utility>

#include "base/log.h"
#include "protocol/engine/apply/engine_configurator.h"

namespace penstock::adapter::kubelet {

using protocol::engine::ConfigureOptions;
using protocol::engine::ConfigureResult;
using protocol::engine::DesiredConfig;
using protocol::engine::EngineConfigurator;
using protocol::engine::Restart;
using protocol::engine::cri::Cdi;
using protocol::engine::cri::EngineAbilities;

struct EngineReconciler::State {
  State(os::Loop& c, protocol::engine::cri::EngineWatcher& e, Options o)
      : control(c), engine(e), options(std::move(o)) {}

  void Configure(api::EngineSetup next, std::vector<std::string> names) {
    if (next != api::EngineSetup::kRuntime) names.clear();
    if (wanted == next && handlers == names) return;
    wanted = next;
    handlers = std::move(names);
    problem.clear();
    configured_for.reset();
    Reconcile();
  }

  bool IsAsWanted(const EngineAbilities& now) const {
    if (wanted == api::EngineSetup::kOff) return true;
    return wanted == api::EngineSetup::kCdi && now.cdi != Cdi::kOff;
  }

  DesiredConfig DesiredOf() const {
    DesiredConfig desired{.cdi = true};
    for (const std::string& name : handlers) desired.handlers.push_back({name, options.runtime});
    return desired;
  }

  void Reconcile() {
    const auto known = engine.published().Get();
    if (!known->engine || running || !problem.empty() || configured_for == *known->engine ||
        IsAsWanted(*known->engine))
      return;
    configured_for = *known->engine;
    auto install = protocol::engine::InstallOfSocket(options.proc_root, known->engine->socket);
    if (!install.ok()) return Failed(install.error());
    ConfigureOptions how{.desired = DesiredOf(),
                         .beside = true,
                         .respect = true,
                         .state_dir = options.state_dir,
                         .proc_root = options.proc_root};
    // The engine has no systemd unit, so it is unknown who supervises it: do not restart it. It
    // reads the new configuration at its next start.
    how.restart = install->supervised ? Restart::kSystemd : Restart::kNone;
    const bool starts_later = !install->supervised;
    running = std::make_unique<EngineConfigurator>(
        control, *install, std::move(how),
        [](const std::string& what) {
          base::Log(base::kInfo, "engine configuration", {{"what", what}});
        },
        [this, name = install->name, starts_later](Result<ConfigureResult> done) {
          // Posted, since this may be called before `running` is set, and the configurator must not
          // be destroyed inside its own callback.
          control.Post([this, name, starts_later, done = std::move(done)] {
            running.reset();
            Done(name, starts_later, done);
          });
        });
  }

  void Done(const std::string& name, bool starts_later, const Result<ConfigureResult>& done) {
    // It was about what was wanted before.
    if (!done.ok() && !configured_for) {
      base::Log(base::kWarn, "engine configuration failed; another one is desired since",
                {{"why", done.error().message()}});
      return Reconcile();
    }
    if (!done.ok()) return Failed(done.error());
    for (const auto& file : done->change.files)
      base::Log(base::kInfo, "engine configured", {{"engine", name}, {"file", file.path}});
    if (!done->change.files.empty() && starts_later)
      base::Log(base::kWarn, "engine configured; takes effect when the engine restarts",
                {{"engine", name}});
    engine.QueryAgain();
    Reconcile();
  }

  void Failed(const base::Error& error) {
    problem = "cannot configure the container engine: " + error.message();
    base::Log(base::kWarn, "engine configuration failed", {{"why", error.message()}});
    options.failed();
  }

  os::Loop& control;
  protocol::engine::cri::EngineWatcher& engine;
  const Options options;
  api::EngineSetup wanted = api::EngineSetup::kOff;
  std::vector<std::string> handlers;  // empty unless kRuntime is wanted
  std::string problem;
  // What it was when it was last configured as wanted; nothing: what is wanted was not tried yet.
  std::optional<EngineAbilities> configured_for;
  std::unique_ptr<EngineConfigurator> running;
};

EngineReconciler::EngineReconciler(os::Loop& control, protocol::engine::cri::EngineWatcher& engine,
                                   Options options)
    : state_(std::make_unique<State>(control, engine, std::move(options))) {}

EngineReconciler::~EngineReconciler() = default;

void EngineReconciler::Configure(api::EngineSetup wanted, std::vector<std::string> handlers) {
  state_->Configure(wanted, std::move(handlers));
}

void EngineReconciler::EngineChanged() { state_->Reconcile(); }

const std::string& EngineReconciler::problem() const { return state_->problem; }

}  // namespace penstock::adapter::kubelet
