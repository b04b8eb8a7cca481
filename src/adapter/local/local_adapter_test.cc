// Tests LocalAdapter through its real socket, with a loop, clients, and the test's own groups.
#include "adapter/local/local_adapter.h"

#include <future>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/testing/fake_clock.h"
#include "base/core/testing/must.h"
#include "device/testing/acme.h"
#include "node/inventory/testing/acme_parts.h"
#include "node/lease/testing/fake_cgroup_manager.h"
#include "os/process/process.h"
#include "os/testing/run_on.h"
#include "os/testing/temporary_folder.h"
#include "protocol/broker/client.h"

namespace penstock::adapter::local {
namespace {

using protocol::broker::Client;
using protocol::broker::RunAnswer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr base::Duration kPatience = std::chrono::seconds(60);

class LocalAdapterTest : public testing::Test {
 protected:
  explicit LocalAdapterTest(const base::Clock* clock = nullptr)
      : loop_("control", clock != nullptr ? *clock : machine_clock_) {
    loop_.Start();
    io_.Start();
    OnLoop([this] {
      device::Driver driver;
      driver.vendor = "acme";
      inventory_.SetVendor({"acme", std::make_shared<const device::Driver>(driver), ""});
      std::vector facts = {device::testing::AcmeDevice(0, 2), device::testing::AcmeDevice(1, 2)};
      facts[0].model = "Acme Big";
      inventory_.SetFacts("acme", facts, "", loop_.clock().Wall());
      for (const auto& one : facts)
        inventory_.SetHealth(one.id, device::HealthState::kHealthy, "", loop_.clock().Wall());
      for (const auto& one : facts) inventory_.SetReading(one.id, {}, loop_.clock().Wall());
      turns_.emplace(loop_, inventory_, ledger_, offers_,
                     [this](const auto& now, const auto& before) {
                       if (adapter_) adapter_->Follow(now, before);
                     });
    });
  }
  ~LocalAdapterTest() override {
    OnLoop([this] {
      turns_.reset();
      adapter_.reset();
    });
    io_.Stop();
    loop_.Stop();
  }

  void OnLoop(const std::function<void()>& function) { os::RunOn(loop_, function); }

  void Start(bool enabled = true) {
    OnLoop([this, enabled] {
      adapter_ = std::make_unique<LocalAdapter>(
          loop_, io_, LocalAdapter::Node{inventory_, ledger_, offers_, device::testing::FindAcme},
          LocalAdapter::Options{run_dir_.path(), "no-such-group", "/proc", enabled, queue_file_,
                                "boot"},
          LocalAdapter::Callbacks{[this] { return MakeReport(); },
                                  [this] { ++ended_; },
                                  preview_,
                                  move_,
                                  samples_,
                                  {},
                                  divide_,
                                  {},
                                  release_},
          [this]() -> base::Result<std::unique_ptr<node::lease::CgroupManager>> {
            if (!no_rights_.empty()) return Error(Code::kPermissionDenied, no_rights_);
            return std::unique_ptr<node::lease::CgroupManager>(
                std::make_unique<node::lease::FakeCgroupManager>(kernel_));
          });
      const auto opened = adapter_->Open();
      ASSERT_TRUE(opened.ok()) << opened.error().ToString();
    });
  }
  api::Report MakeReport() const {
    api::Report report;
    report.node = "n1";
    report.allocators = {adapter_->Report()};
    return report;
  }

  Client Connect() { return std::move(*Client::Connect(run_dir_.path())); }
  Client Query(const std::string& line) {
    Client client = Connect();
    EXPECT_TRUE(client.SendLine(line).ok());
    return client;
  }
  /// A client whose run is allocated devices, or waits for them.
  Client Granted(const std::string& line) {
    Client client = Query(line);
    EXPECT_TRUE(Next(client)->granted);
    return client;
  }
  Client Waiting(const std::string& line) {
    Client client = Query(line);
    EXPECT_TRUE(Next(client)->waiting);
    return client;
  }
  static base::Result<RunAnswer> Next(Client& client) {
    ASSIGN(const auto line, client.ReadLine(kPatience));
    return protocol::broker::DecodeRunAnswer(line);
  }
  /// Ends the processes of the lease that holds the device.
  void EndHolderOf(const std::string& device) {
    OnLoop([&] { kernel_.End(ledger_.Get()->HolderOf(device)->id); });
  }
  std::size_t Held() const { return ledger_.Get()->leases.size(); }
  bool Soon(const std::function<bool()>& holds) {
    for (const base::TimePoint late = loop_.clock().Now() + kPatience;
         loop_.clock().Now() < late;) {
      bool held = false;
      OnLoop([&] { held = holds(); });
      if (held) return true;
      ::poll(nullptr, 0, 5);
    }
    return false;
  }

  os::TemporaryFolder run_dir_;
  std::string queue_file_;
  base::SystemClock machine_clock_;
  os::Loop loop_, io_{"io"};
  node::lease::FakeKernel kernel_;
  std::string no_rights_;
  std::function<void(const node::change::MoveRequest&, node::change::MoveRequests::Progress,
                     node::change::MoveRequests::Done)>
      move_;
  std::function<void(const std::string&, const node::change::LayoutRequest&,
                     node::change::Divisions::Progress, node::change::Divisions::Done)>
      divide_;
  DriverRelease release_;
  std::function<api::Samples()> samples_;
  node::inventory::Inventory inventory_;
  node::ledger::Ledger ledger_;
  base::Published<device::SharedDevices> servers_;
  node::share::Offers offers_{inventory_, ledger_, device::testing::FindAcme, {"local"}};
  std::unique_ptr<LocalAdapter> adapter_;
  std::optional<node::share::Turns> turns_;
  std::function<void(const protocol::broker::PreviewRequest&, AnswerQueue::Done)> preview_;
  int ended_ = 0;
};

TEST_F(LocalAdapterTest, GivesAFreeDeviceAtOnce) {
  Start();
  Client client = Query(R"({"op":"run","command":"train"})");
  const auto answer = Must(Next(client));
  ASSERT_TRUE(answer.granted);
  ASSERT_THAT(answer.granted->devices, SizeIs(1));
  const std::string id = answer.granted->devices[0].id;
  EXPECT_EQ(answer.granted->environment.at("ACME"), id);
  EXPECT_EQ(answer.granted->enforcement, "devices");
  OnLoop([&] {
    const auto* lease = ledger_.Get()->HolderOf(id);
    ASSERT_NE(lease, nullptr);
    EXPECT_EQ(lease->id, answer.granted->lease);
    EXPECT_EQ(lease->command, "train");
    EXPECT_EQ(lease->processes.at(0).pid, ::getpid());
    EXPECT_EQ(lease->processes.at(0).start, *os::ReadProcessStart("/proc", ::getpid()));
    EXPECT_THAT(kernel_.groups.at(lease->id).members, ElementsAre(::getpid()));
  });
}

TEST_F(LocalAdapterTest, KeepsTheLeaseWhenTheConnectionCloses) {
  Start();
  Granted(R"({"op":"run"})");
  Client other = Connect();
  ASSERT_TRUE(other.Query(R"({"op":"version"})", kPatience).ok());
  EXPECT_EQ(Held(), 1u);
}

TEST_F(LocalAdapterTest, ServesFirstComeFirst) {
  Start();
  Client holder = Granted(R"({"op":"run"})");
  Client large = Query(R"({"op":"run","gpus":2})");
  const auto waits = Next(large);
  ASSERT_TRUE(waits->waiting) << "one device is free, two are requested";
  EXPECT_EQ(waits->waiting->position, 0);
  EXPECT_THAT(waits->waiting->reason, HasSubstr("held by"));
  Client small = Query(R"({"op":"run"})");
  EXPECT_EQ(Next(small)->waiting->position, 1) << "although one device is free";
  EndHolderOf("G0");
  EXPECT_TRUE(Next(large)->granted);
  EXPECT_EQ(Next(small)->waiting->position, 0);
  EndHolderOf("G1");
  EXPECT_TRUE(Next(small)->granted);
}

TEST_F(LocalAdapterTest, ForgetsOneWhoGoesWhileItWaits) {
  Start();
  Client holder = Granted(R"({"op":"run","gpus":2})");
  Waiting(R"({"op":"run"})");
  EXPECT_TRUE(Soon([this] { return adapter_->waiting() == 0; }));
}

TEST_F(LocalAdapterTest, NeverLetsOneIntoTheLineWhoLeftBeforeItWasLookedUp) {
  Start();
  std::promise<void> blocked;
  auto release = blocked.get_future().share();
  io_.Post([release] { release.wait(); });  // a slow user database
  { Client gone = Query(R"({"op":"run"})"); }
  Client alive = Query(R"({"op":"run"})");
  Client other = Connect();
  ASSERT_TRUE(other.Query(R"({"op":"version"})", kPatience).ok());
  blocked.set_value();
  EXPECT_TRUE(Next(alive)->granted);
  EXPECT_EQ(Held(), 1u);
}

TEST_F(LocalAdapterTest, ListsAndCancelsWhoWaits) {
  Start();
  Client holder = Granted(R"({"op":"run","gpus":2})");
  Client waiter = Waiting(R"({"op":"run","model":"*Big","command":"sleep"})");
  Client other = Connect();
  const auto queue = protocol::broker::DecodeQueue(*other.Query(R"({"op":"queue"})", kPatience));
  ASSERT_THAT(*queue, SizeIs(1));
  EXPECT_EQ(queue->at(0).ticket, "q-2");
  EXPECT_EQ(queue->at(0).command, "sleep");
  EXPECT_EQ(queue->at(0).model, "*Big");
  OnLoop([this] {
    const view::PageQueue shown = adapter_->Queue();
    ASSERT_THAT(shown.runs, SizeIs(1));
    EXPECT_EQ(shown.runs[0].ticket, "q-2");
    EXPECT_EQ(shown.runs[0].command, "sleep");
  });
  EXPECT_TRUE(other.Query(R"({"op":"cancel","ticket":"q-2"})", kPatience).ok());
  EXPECT_EQ(Next(waiter).error().code(), Code::kCancelled);
  EXPECT_EQ(other.Query(R"({"op":"cancel","ticket":"q-2"})", kPatience).error().code(),
            Code::kNotFound);
}

TEST_F(LocalAdapterTest, AnswersAWaitThatRanOutAndOneThatNeverCanEnd) {
  Start();
  Client holder = Granted(R"({"op":"run","gpus":2})");
  Client hasty = Query(R"({"op":"run","wait":"0s"})");
  EXPECT_EQ(Next(hasty).error().code(), Code::kDeadlineExceeded);
  Client greedy = Query(R"({"op":"run","gpus":3})");
  EXPECT_EQ(Next(greedy).error().code(), Code::kFailedPrecondition);
}

TEST_F(LocalAdapterTest, SaysThatItIsVisibilityOnlyAndWhy) {
  no_rights_ = "root is needed";
  Start();
  Client client = Query(R"({"op":"run"})");
  const auto answer = Next(client);
  EXPECT_EQ(answer->granted->enforcement, "visibility");
  EXPECT_EQ(answer->granted->reason, "root is needed");
  Client other = Connect();
  EXPECT_THAT(*other.Query(R"({"op":"status"})", kPatience),
              HasSubstr("visibility only: root is needed"));
}

TEST_F(LocalAdapterTest, AnswersTheRestWhereItIsSwitchedOff) {
  Start(false);
  Client client = Query(R"({"op":"run"})");
  EXPECT_THAT(Next(client).error().message(), HasSubstr("switched off"));
  const auto status = Must(client.Query(R"({"op":"status"})", kPatience));
  EXPECT_EQ(api::ParseReport(status)->allocators.at(0).state, "closed");
}

TEST_F(LocalAdapterTest, ReportsItsStateAndResources) {
  Start();
  OnLoop([this] {
    const auto report = adapter_->Report();
    EXPECT_EQ(report.state, "open");
    EXPECT_THAT(report.reason, HasSubstr("no group no-such-group"));
    EXPECT_THAT(report.resources, ElementsAre("acme.com/gpu"));
  });
}

TEST_F(LocalAdapterTest, PassesOnThatTheAgentShallEnd) {
  Start();
  Client client = Connect();
  EXPECT_TRUE(client.Query(R"({"op":"down"})", kPatience).ok());
  OnLoop([this] { EXPECT_EQ(ended_, 1); });
}

TEST_F(LocalAdapterTest, EndsWithSomeoneInLine) {
  Start();
  Client holder = Granted(R"({"op":"run","gpus":2})");
  Client waiter = Waiting(R"({"op":"run"})");
  OnLoop([this] { adapter_.reset(); });
  EXPECT_EQ(Next(waiter).error().code(), Code::kUnavailable);
  EXPECT_EQ(Held(), 1u) << "allocated devices stay allocated";
}

TEST_F(LocalAdapterTest, SaysWhatDevicesMeasureWhereSomethingDoes) {
  Start();
  EXPECT_EQ(Connect().Query(R"({"op":"samples"})").error().code(), Code::kUnimplemented);
  samples_ = [] { return api::Samples{.node = "n1"}; };
  OnLoop([this] { adapter_.reset(); });
  Start();
  EXPECT_EQ(api::ParseSamples(*Connect().Query(R"({"op":"samples"})"))->node, "n1");
}

TEST_F(LocalAdapterTest, AnswersWithAPlanWhereSomeoneCanMakeOne) {
  Start();
  EXPECT_EQ(Connect().Query(R"({"op":"plan"})").error().code(), Code::kUnimplemented);
  OnLoop([this] { adapter_.reset(); });
  preview_ = [](const protocol::broker::PreviewRequest& preview, const AnswerQueue::Done& done) {
    if (!preview.text) return done(Error(Code::kInvalidArgument, preview.name + ": wrong"));
    done("{\"text\":\"" + *preview.text + "\"}");
  };
  Start(false);
  EXPECT_EQ(*Connect().Query(R"({"op":"plan","text":"x"})"), R"({"text":"x"})");
  EXPECT_EQ(Connect().Query(R"({"op":"plan","name":"f"})").error().message(), "f: wrong");
}

TEST_F(LocalAdapterTest, MakesOnePlanAtATimeForEachUserAndAnswersTheRestMeanwhile) {
  std::vector<AnswerQueue::Done> previews;
  preview_ = [&previews](const protocol::broker::PreviewRequest&, AnswerQueue::Done done) {
    previews.push_back(std::move(done));
  };
  Start();
  Client first = Query(R"({"op":"plan"})");
  ASSERT_TRUE(Soon([&] { return previews.size() == 1; }));
  Client second = Connect();
  EXPECT_EQ(second.Query(R"({"op":"plan"})", kPatience).error().code(), Code::kUnavailable);
  EXPECT_TRUE(second.Query(R"({"op":"status"})", kPatience).ok());
  OnLoop([&] { previews.at(0)(std::string("{}")); });
  EXPECT_EQ(*first.ReadLine(kPatience), "{}");

  { Client gone = Query(R"({"op":"plan"})"); }
  ASSERT_TRUE(Soon([&] { return previews.size() == 2; }));
  OnLoop([&] { previews.at(1)(std::string("{}")); });
  Client third = Query(R"({"op":"plan"})");
  EXPECT_TRUE(Soon([&] { return previews.size() == 3; }))
      << "a client that leaves passes its turn to the next";
}

TEST_F(LocalAdapterTest, GrantsPartsByTheirProfileAndQueuesWhoFindsNone) {
  const auto facts = node::inventory::AcmeWithParts({{"1g.5gb", "3g.20gb"}, {}});
  OnLoop([&] {
    inventory_.SetFacts("acme", facts, "", loop_.clock().Wall());
    for (const auto& one : facts) {
      inventory_.SetHealth(one.id, device::HealthState::kHealthy, "", loop_.clock().Wall());
      inventory_.SetReading(one.id, {}, loop_.clock().Wall());
    }
  });
  Start();
  Client first = Query(R"({"op":"run","profile":"1G.5GB"})");
  const auto part = Next(first);
  ASSERT_TRUE(part.ok() && part->granted) << part.error().ToString();
  EXPECT_EQ(part->granted->devices.at(0).id, "G0.0");
  EXPECT_EQ(part->granted->devices.at(0).number, "0:0");
  EXPECT_EQ(part->granted->devices.at(0).profile, "1g.5gb");
  EXPECT_EQ(part->granted->environment.at("ACME"), "G0.0");
  Client second = Query(R"({"op":"run","profile":"1g.5gb"})");
  const auto waiting = Next(second);
  ASSERT_TRUE(waiting.ok() && waiting->waiting);
  EXPECT_EQ(waiting->waiting->profile, "1g.5gb");
  EXPECT_THAT(waiting->waiting->reason,
              HasSubstr("1 requested, 0 of 1 free; GPU 0:0 (G0.0): held"));
  Client third = Query(R"({"op":"run","minMemory":1073741824})");
  EXPECT_EQ(Next(third)->granted->devices.at(0).id, "G0.1") << "behind one that cannot use it";
  Client fourth = Query(R"({"op":"run"})");
  EXPECT_EQ(Next(fourth)->granted->devices.at(0).id, "G1") << "an older client, a whole device";
  for (const auto& [request, why] :
       {std::pair{R"({"op":"run","profile":"9g.90gb"})", "no GPU of this node is divided into 9g"},
        {R"({"op":"run","profile":"many"})", "\"many\" is no profile"}}) {
    Client refused = Query(request);
    EXPECT_THAT(Next(refused).error().message(), HasSubstr(why));
  }
}

TEST_F(LocalAdapterTest, CutsAFreeDeviceForOneWhoAsksForAShareAndMakesItWholeAgain) {
  Start();
  Client first = Query(R"({"op":"run","share":2,"devices":["1"]})");
  const auto one = Next(first);
  ASSERT_TRUE(one.ok() && one->granted) << one.error().ToString();
  Client second = Query(R"({"op":"run","share":2,"devices":["1"]})");
  const auto other = Next(second);
  ASSERT_TRUE(other.ok() && other->granted) << other.error().ToString();
  EXPECT_EQ(
      one->granted->devices.at(0),
      (protocol::broker::GrantedDevice{"G1", 1, "Acme Big", "G1::0", 2, "time-slicing", "none"}));
  EXPECT_EQ(other->granted->devices.at(0).slot, "G1::1");
  EXPECT_EQ(one->granted->environment.at("ACME"), "G1");
  EXPECT_EQ(other->granted->environment.at("ACME"), "G1");
  OnLoop([&] {
    for (const std::string& lease : {one->granted->lease, other->granted->lease})
      EXPECT_THAT(kernel_.groups.at(lease).rules.admitted, ElementsAre(os::DeviceRange{195, 1, 1}))
          << "both sessions see the same device";
  });
  Client third = Query(R"({"op":"run","share":2,"devices":["1"],"wait":"0s"})");
  EXPECT_EQ(Next(third).error().code(), Code::kDeadlineExceeded);
  Client whole = Waiting(R"({"op":"run","devices":["1"]})");
  OnLoop([&] { kernel_.End(one->granted->lease); });
  Client again = Connect();
  ASSERT_TRUE(again.Query(R"({"op":"version"})", kPatience).ok());
  EXPECT_EQ(adapter_->waiting(), 1u) << "one share is still held";
  OnLoop([&] { kernel_.End(other->granted->lease); });
  RunAnswer answer;
  do answer = *Next(whole);
  while (!answer.granted);
  EXPECT_EQ(answer.granted->devices.at(0).slot, "G1");
  EXPECT_EQ(answer.granted->devices.at(0).isolation, "hardware");
}

TEST_F(LocalAdapterTest, OneWhoAsksForAShareWaitsBehindOneWhoAskedForTheWhole) {
  Start();
  Client holder = Granted(R"({"op":"run","gpus":2})");
  Client whole = Waiting(R"({"op":"run","gpus":2})");
  Client share = Query(R"({"op":"run","share":4})");
  EXPECT_EQ(Next(share)->waiting->position, 1);
  Client other = Connect();
  EXPECT_EQ(
      protocol::broker::DecodeQueue(*other.Query(R"({"op":"queue"})", kPatience))->at(1).share, 4);
}

TEST_F(LocalAdapterTest, GivesOutWhatTheConfigurationShares) {
  OnLoop([this] {
    api::NodeConfig config;
    config.sharing.rules = {{.devices = {"0"},
                             .strategy = api::ShareStrategy::kTimeSlicing,
                             .replicas = 3,
                             .rename = "acme.com/third"}};
    offers_.Configure(config, {});
  });
  Start();
  Client client = Query(R"({"op":"run","share":3})");
  const auto answer = Next(client);
  ASSERT_TRUE(answer.ok() && answer->granted);
  EXPECT_EQ(answer->granted->devices.at(0).slot, "G0::0");
  OnLoop(
      [this] { EXPECT_EQ(ledger_.Get()->HolderOf("G0")->slots.at(0).resource, "acme.com/third"); });
}

TEST_F(LocalAdapterTest, RefusesWhatItCannotPutInPlaceForAProcess) {
  OnLoop([this] {
    api::NodeConfig config;
    config.sharing.rules = {{.strategy = api::ShareStrategy::kServer, .replicas = 2}};
    offers_.FollowServers("acme", servers_);
    offers_.Configure(config, {});
    device::SharedDevice shared{.set = "acme.com/gpu", .ready = true};
    shared.process.mounts = {{"/dev/shm", "/run/mps/shm"}};
    servers_.Set({{"G0", shared}, {"G1", shared}});
  });
  Start();
  Client client = Query(R"({"op":"run","share":2})");
  EXPECT_THAT(Next(client).error().message(), HasSubstr("in containers only"));
  EXPECT_EQ(Held(), 0u);
}

TEST_F(LocalAdapterTest, AGrantHasTheLimitsInForceAndWhatEnforcesThem) {
  OnLoop([this] {
    api::NodeConfig config;
    config.sharing.rules = {{.strategy = api::ShareStrategy::kServer, .replicas = 2}};
    offers_.FollowServers("acme", servers_);
    offers_.Configure(config, {});
    const device::SharedDevice shared{.set = "acme.com/gpu",
                                      .ready = true,
                                      .isolation = device::Isolation::kMemoryPerProcess,
                                      .memory = base::Mebibytes(512)};
    servers_.Set({{"G0", shared}, {"G1", shared}});
  });
  Start();
  Client client = Query(R"({"op":"run","share":2})");
  const auto answer = Next(client);
  ASSERT_TRUE(answer.ok() && answer->granted);
  const auto& device = answer->granted->devices.at(0);
  EXPECT_EQ(device.memory_limit, base::Mebibytes(512));
  EXPECT_EQ(device.memory_limit_by, "server");
  EXPECT_EQ(device.compute_percent, 0);
  EXPECT_EQ(device.compute_by, "");
  Client within = Query(R"({"op":"run","share":2,"memory":536870912})");
  const auto granted = Next(within);
  ASSERT_TRUE(granted.ok() && granted->granted) << "a limit that is in force can be requested";
  EXPECT_EQ(granted->granted->devices.at(0).memory_limit_by, "server");
  Client beyond = Query(R"({"op":"run","share":2,"memory":536870911})");
  EXPECT_THAT(Next(beyond).error().message(), HasSubstr("limits the memory of a process to 512"));
}

TEST_F(LocalAdapterTest, RefusesLimitsThatNothingEnforces) {
  Start();
  Client memory = Query(R"({"op":"run","memory":1048576})");
  EXPECT_THAT(Next(memory).error().message(), HasSubstr("cannot enforce a limit of memory"));
  Client compute = Query(R"({"op":"run","computePercent":50})");
  EXPECT_THAT(Next(compute).error().message(), HasSubstr("cannot enforce a limit of compute time"));
  EXPECT_EQ(Held(), 0u);
}

TEST_F(LocalAdapterTest, LetsGoOfADriverUntilTheConnectionEnds) {
  Start();
  const std::string request = R"({"op":"release","vendor":"acme"})";
  EXPECT_EQ(Connect().Query(request).error().code(), Code::kUnimplemented);
  OnLoop([this] { adapter_.reset(); });
  int begun = 0, ended = 0;
  release_ = {.begin =
                  [&](const std::string& vendor, const DriverRelease::Done& done) {
                    if (vendor != "acme") return done(Error(Code::kNotFound, "no such vendor"));
                    ++begun;
                    done(std::vector<std::string>{"a worker hangs"});
                  },
              .end = [&](const std::string&) { ++ended; }};
  Start();
  {
    Client client = Query(request);
    const auto released = protocol::broker::DecodeReleased(*client.ReadLine(kPatience));
    EXPECT_THAT(released->remaining, ElementsAre("a worker hangs"));
    OnLoop([&] { EXPECT_EQ(std::pair(begun, ended), std::pair(1, 0)); });
  }
  EXPECT_TRUE(Soon([&] { return ended == 1; }));
  EXPECT_EQ(Connect().Query(R"({"op":"release","vendor":"other"})").error().code(),
            Code::kNotFound);
  OnLoop([&] { EXPECT_EQ(std::pair(begun, ended), std::pair(1, 1)); });
}

TEST_F(LocalAdapterTest, DividesDevicesForThoseWhoMayAndReportsEachStep) {
  Start();
  const std::string request =
      R"({"op":"divide","layout":"{\"name\":\"a\",\"rules\":[{\"allDevices\":true}]}","wait":"1m"})";
  EXPECT_EQ(Connect().Query(request).error().code(), Code::kUnimplemented);
  OnLoop([this] { adapter_.reset(); });
  std::vector<node::change::LayoutRequest> requests;
  std::vector<std::string> vendors;
  divide_ = [&](const std::string& vendor, const node::change::LayoutRequest& wanted,
                const node::change::Divisions::Progress& progress,
                const node::change::Divisions::Done& done) {
    vendors.push_back(vendor);
    requests.push_back(wanted);
    progress({"G0", "0", "dividing", "create 1g"});
    done(std::vector<node::change::DeviceDivision>{{"G0", "0", "divided", ""}});
  };
  Start();
  Client client = Query(request);
  EXPECT_EQ(protocol::broker::DecodeDivideAnswer(*client.ReadLine(kPatience))->dividing->reason,
            "create 1g");
  EXPECT_EQ(protocol::broker::DecodeDivideAnswer(*client.ReadLine(kPatience))->divided->at(0).state,
            "divided");
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_THAT(vendors, ElementsAre("")) << "as clients of the first releases ask";
  EXPECT_EQ(requests[0].source, "user");
  EXPECT_EQ(requests[0].wait, std::chrono::minutes(1));
  EXPECT_EQ(requests[0].layout, (api::Layout{"a", {{.all_devices = true}}}));
  for (const char* layout :
       {"x", "[]", "{\\\"rules\\\":1}", "{\\\"rules\\\":[{\\\"parts\\\":[{}]}]}"})
    EXPECT_EQ(Connect()
                  .Query(R"({"op":"divide","layout":")" + std::string(layout) + "\"}")
                  .error()
                  .code(),
              Code::kInvalidArgument)
        << layout;
  EXPECT_EQ(requests.size(), 1u) << "nothing else was done";
  EXPECT_TRUE(
      Connect().Query(R"({"op":"divide","layout":"{\"name\":\"a\"}","vendor":"acme"})").ok());
  EXPECT_THAT(vendors, ElementsAre("", "acme"));
}

TEST_F(LocalAdapterTest, MovesDevicesForThoseWhoMayAndReportsEachStep) {
  Start();
  EXPECT_EQ(Connect().Query(R"({"op":"door","devices":["0"],"door":"kubelet"})").error().code(),
            Code::kUnimplemented);
  OnLoop([this] { adapter_.reset(); });
  std::function<void()> go_on;
  move_ = [&go_on](const node::change::MoveRequest& request,
                   const node::change::MoveRequests::Progress& progress,
                   const node::change::MoveRequests::Done& done) {
    if (request.devices.at(0) == "7") return done(Error(Code::kNotFound, "there is no device 7"));
    node::change::DeviceMove move{
        "G0", 0, "local", request.allocator, node::change::MoveState::kWaiting, "held by r-1"};
    progress(move);
    go_on = [move, done]() mutable {
      move.state = node::change::MoveState::kOffered;
      done(std::vector{move});
    };
  };
  Start();
  EXPECT_EQ(Connect().Query(R"({"op":"door","devices":["7"],"door":"kubelet"})").error().message(),
            "there is no device 7");
  Client client = Query(R"({"op":"door","devices":["0"],"door":"kubelet","wait":"1m"})");
  const auto step = protocol::broker::DecodeAssignAnswer(*client.ReadLine(kPatience));
  EXPECT_EQ(step->moving->state, "waiting");
  EXPECT_EQ(step->moving->reason, "held by r-1");
  OnLoop([&] { go_on(); });
  const auto end = protocol::broker::DecodeAssignAnswer(*client.ReadLine(kPatience));
  EXPECT_EQ(end->moved->at(0).state, "offered");
  { Query(R"({"op":"door","devices":["0"],"door":"local"})"); }
  Client other = Connect();
  ASSERT_TRUE(other.Query(R"({"op":"version"})", kPatience).ok());
  OnLoop([&] { go_on(); });  // no client listens any more
  ASSERT_TRUE(other.Query(R"({"op":"version"})", kPatience).ok());
}

/// The kept queue, under the test's own clock.
struct WithClock {
  base::FakeClock clock_;
};
class QueueFileTest : protected WithClock, public LocalAdapterTest {
 protected:
  QueueFileTest() : LocalAdapterTest(&clock_) {
    queue_file_ = state_dir_ / "queue.json";
    Start();
    Granted(R"({"op":"run","gpus":2})");
  }

  /// Advances the clock by this long and lets all executors run.
  void Turn(base::Duration by) {
    OnLoop([&] { clock_.Advance(by); });
    for (int round = 0; round < 3; ++round) {
      OnLoop([] {});
      os::RunOn(io_, [] {});
    }
    OnLoop([] {});
    struct stat file {};
    if (::stat(queue_file_.c_str(), &file) == 0 &&
        std::exchange(inode_, file.st_ino) != file.st_ino)
      ++writes_;
  }
  node::lease::QueueCheckpoint Kept() {
    return *node::lease::DecodeQueueCheckpoint(*os::ReadFile(queue_file_), "boot", queue_file_);
  }
  std::vector<std::string> Places() {
    std::vector<std::string> tickets;
    for (const auto& waiting : Kept().waiting) tickets.push_back(waiting.ticket);
    return tickets;
  }
  void Cancel(const std::string& ticket) {
    EXPECT_TRUE(Connect().Query(R"({"op":"cancel","ticket":")" + ticket + R"("})", kPatience).ok());
  }

  os::TemporaryFolder state_dir_;
  ino_t inode_ = 0;
  int writes_ = 0;  // of the file, which is replaced each time; as Turn sees it
};

TEST_F(QueueFileTest, HasAtTheEndWhoWaitsThenThoughAnOlderOneIsBeingWritten) {
  std::vector<Client> waiting;
  for (int i = 0; i < 3; ++i) waiting.push_back(Waiting(R"({"op":"run"})"));
  Turn(std::chrono::seconds(1));
  EXPECT_THAT(Places(), ElementsAre("q-2", "q-3", "q-4"));
  std::promise<void> blocked;
  io_.Post([release = blocked.get_future().share()] { release.wait(); });  // a slow disk
  for (const char* ticket : {"q-2", "q-3"}) {
    Cancel(ticket);
    OnLoop([&] { clock_.Advance(std::chrono::seconds(1)); });
    OnLoop([] {});
  }
  OnLoop([this] { adapter_.reset(); });
  blocked.set_value();
  os::RunOn(io_, [] {});
  EXPECT_THAT(Places(), ElementsAre("q-4"));
  EXPECT_EQ(Kept().next_ticket, 5u);
}

TEST_F(QueueFileTest, IsNotWrittenForThoseWhoDoNotWait) {
  Client waiter = Waiting(R"({"op":"run"})");
  Turn(std::chrono::seconds(1));
  ASSERT_THAT(Places(), ElementsAre("q-2"));
  writes_ = 0;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(Next(*std::make_unique<Client>(Query(R"({"op":"run","wait":"0s"})"))).error().code(),
              Code::kDeadlineExceeded);
    Turn(std::chrono::seconds(1));
  }
  EXPECT_EQ(writes_, 0);
  EXPECT_GE(Kept().next_ticket, 103u)
      << "after a crash, the next agent does not reuse these ticket numbers";
}

TEST_F(QueueFileTest, NotesMoreNumbersBeforeTheyRunOut) {
  for (int i = 0; i < 3000; ++i) {
    EXPECT_EQ(Next(*std::make_unique<Client>(Query(R"({"op":"run","wait":"0s"})"))).error().code(),
              Code::kDeadlineExceeded);
    if (i % 100 != 0) continue;
    Turn(std::chrono::seconds(1));
    EXPECT_GT(Kept().next_ticket, static_cast<std::uint64_t>(i) + 2);
  }
  EXPECT_LE(writes_, 7);
}

TEST_F(QueueFileTest, IsWrittenFiveTimesASecondAtMost) {
  Turn(std::chrono::seconds(1));
  writes_ = 0;
  for (int i = 0; i < 50; ++i) {
    Client comes_and_goes = Waiting(R"({"op":"run"})");
    Turn(std::chrono::milliseconds(20));
  }
  EXPECT_LE(writes_, 6);
}

}  // namespace
}  // namespace penstock::adapter::local
