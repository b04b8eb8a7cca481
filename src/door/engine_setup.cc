// One run of edge/engine's Configuring for each engine process and wish.
#include "door/engine_setup.h"

#include <optional>
#include <utility>

#include "base/log.h"
#include "edge/engine/configuring.h"

namespace penstock::door {

using base::Result;
using edge::engine::Configured;
using edge::engine::ConfigureOptions;
using edge::engine::Configuring;
using edge::engine::Restart;
using edge::engine::Site;
using edge::engine::Wish;
using edge::engine::cri::Cdi;
using edge::engine::cri::Engine;
using edge::engine::cri::Known;

struct EngineSetup::State {
  State(os::Loop& c, edge::engine::cri::Inquiry& e, Options o) : control(c), engine(e), options(std::move(o)) {
    on_engine = engine.published().Subscribe([this](const auto&) { Look(); });
  }

  void Configure(api::EngineSetup next) {
    if (std::exchange(wanted, next) == next) return;
    problem.clear();
    looked_at.reset();
    Look();
  }

  bool IsAsWanted(const Engine& now) const {
    if (wanted == api::EngineSetup::kOff) return true;
    return wanted == api::EngineSetup::kCdi && now.cdi != Cdi::kOff;
  }

  Wish WishOf() const {
    Wish wish{.cdi = true};
    if (wanted == api::EngineSetup::kRuntime) wish.handlers.push_back({"nvidia", options.runtime});
    return wish;
  }

  void Look() {
    const auto known = engine.published().Get();
    if (!known->engine || running || !problem.empty() || looked_at == *known->engine || IsAsWanted(*known->engine)) return;
    looked_at = *known->engine;
    auto site = edge::engine::SiteOfSocket(options.proc_root, known->engine->socket);
    if (!site.ok()) return Failed(site.error());
    ConfigureOptions how{.wish = WishOf(), .beside = true, .respect = true, .state_dir = options.state_dir, .proc_root = options.proc_root};
    // Who is in no unit is started by somebody of whom nothing is known: it reads what is written when it starts the next time.
    how.restart = site->supervised ? Restart::kSystemd : Restart::kNone;
    const bool starts_later = !site->supervised;
    running = std::make_unique<Configuring>(
        control, *site, std::move(how),
        [](const std::string& what) {
          base::Log(base::kInfo, "engine", {{"what", what}});
        },
        [this, name = site->name, starts_later](Result<Configured> done) {
          // Later, since this may be called before it is there, and it must not end inside of its own call.
          control.Post([this, name, starts_later, done = std::move(done)] {
            running.reset();
            Done(name, starts_later, done);
          });
        });
  }

  void Done(const std::string& name, bool starts_later, const Result<Configured>& done) {
    if (!done.ok()) return Failed(done.error());
    for (const auto& file : done->change.files) base::Log(base::kInfo, "engine configured", {{"engine", name}, {"file", file.path}});
    if (!done->change.files.empty() && starts_later)
      base::Log(base::kWarn, "engine configured, which counts when it starts the next time", {{"engine", name}});
    engine.AskAgain();
    Look();
  }

  void Failed(const base::Error& error) {
    problem = "the container engine was not configured: " + error.message();
    base::Log(base::kWarn, "engine not configured", {{"why", error.message()}});
  }

  os::Loop& control;
  edge::engine::cri::Inquiry& engine;
  const Options options;
  api::EngineSetup wanted = api::EngineSetup::kOff;
  std::string problem;
  std::optional<Engine> looked_at;  // as it was when it was configured last
  std::unique_ptr<Configuring> running;
  base::Subscription on_engine;
};

EngineSetup::EngineSetup(os::Loop& control, edge::engine::cri::Inquiry& engine, Options options)
    : state_(std::make_unique<State>(control, engine, std::move(options))) {}

EngineSetup::~EngineSetup() = default;

void EngineSetup::Configure(api::EngineSetup wanted) { state_->Configure(wanted); }

const std::string& EngineSetup::problem() const { return state_->problem; }

}  // namespace penstock::door
