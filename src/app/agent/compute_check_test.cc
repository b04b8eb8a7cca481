// With scripts in the place of the vendor's program.
#include "app/agent/compute_check.h"

#include <algorithm>
#include <functional>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/strings.h"
#include "device/testing/acme.h"
#include "node/inventory/testing/acme_inventory.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"

namespace penstock::app {
namespace {

using node::validate::ComputeFacts;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ComputingAcme final : public device::testing::AcmeDialect {
 public:
  std::string_view compute_program() const override { return "acme-compute"; }
};

const device::Dialect* FindComputing(std::string_view) {
  static const ComputingAcme acme;
  return &acme;
}

class ComputeCheckTest : public testing::Test {
 protected:
  ComputeCheckTest() {
    inventory_.vendors[0].driver =
        std::make_shared<const device::Driver>(device::testing::AcmeDriver());
    inventory_.vendors[0].since = base::ParseTime("2026-01-01T00:00:00Z");
    for (const auto& entry : inventory_.devices)
      report_.devices.push_back(
          {.id = entry.facts->id, .vendor = "acme", .health_state = "healthy"});
    check_.Configure({});
    loop_.Start();
  }
  ~ComputeCheckTest() override { loop_.Stop(); }

  /// $5 is the device. Each start is a line of the file "started".
  void Program(const std::string& script) {
    const std::string text = "#!/bin/sh\necho \"$*\" >> " + folder_.path() + "/started\n" + script;
    ASSERT_TRUE(os::WriteFileAtomically(folder_.path() + "/acme-compute", text, 0755).ok());
  }

  std::vector<std::string> Started() {
    const auto text = os::ReadFile(folder_.path() + "/started", 1 << 16);
    if (!text.ok()) return {};
    std::vector<std::string> lines = base::Split(*text, '\n');
    lines.pop_back();
    std::ranges::sort(lines);
    return lines;
  }

  void OnLoop(const std::function<void()>& work) {
    std::promise<void> done;
    loop_.Post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  /// Follows until each device has an outcome, is in use, or none is tried.
  void Run() {
    std::promise<void> end;
    bool ended = false;
    const auto follow = [&] {
      check_.Follow(report_, inventory_);
      const ComputeFacts& facts = check_.facts();
      const std::size_t settled = facts.outcomes.size() + facts.in_use.size();
      if (ended || (facts.off.empty() && settled < report_.devices.size())) return;
      ended = true;
      end.set_value();
    };
    OnLoop([&] {
      changed_ = follow;
      follow();
    });
    end.get_future().wait();
    OnLoop([&] { changed_ = [] {}; });
  }

  void LoadAgain() { inventory_.vendors[0].since += std::chrono::seconds(1); }

  os::TemporaryFolder folder_;
  node::inventory::Snapshot inventory_ = node::inventory::AcmeSnapshot(6);
  api::Report report_;
  os::Loop loop_{"test"};
  std::function<void()> changed_ = [] {};
  ComputeCheck check_{loop_, FindComputing, folder_.path(), [this] { changed_(); }};
};

TEST_F(ComputeCheckTest, EachFreeDeviceComputesOnceForEachLoadOfTheDriver) {
  Program("exit 0\n");
  report_.devices[1].holders.push_back({});
  report_.servers = {{.kind = "server", .devices = {report_.devices[2].id}}};
  Run();
  EXPECT_THAT(check_.facts().outcomes, SizeIs(4));
  EXPECT_THAT(check_.facts().in_use, ElementsAre(report_.devices[1].id, report_.devices[2].id));
  EXPECT_THAT(Started(), SizeIs(4));
  EXPECT_EQ(Started()[0], "--driver-root / --device " + report_.devices[0].id);
  Run();
  EXPECT_THAT(Started(), SizeIs(4));
  report_.devices[1].holders.clear();
  report_.servers.clear();
  LoadAgain();
  Run();
  EXPECT_THAT(check_.facts().outcomes, SizeIs(6));
}

TEST_F(ComputeCheckTest, ADeviceThatCannotComputeSaysWhy) {
  Program(
      "case $4 in *0) echo 'Step'; echo 'acme-compute: init: broken' >&2; echo 'Test FAILED'; "
      "exit 1;; *1) kill -9 $$;; *2) exit 7;; esac\n");
  Run();
  const auto& outcomes = check_.facts().outcomes;
  EXPECT_EQ(outcomes.at(report_.devices[0].id).why, "init: broken");
  EXPECT_EQ(outcomes.at(report_.devices[1].id).why, "acme-compute was ended by signal 9");
  EXPECT_EQ(outcomes.at(report_.devices[2].id).why, "it ended without a reason");
  EXPECT_TRUE(outcomes.at(report_.devices[3].id).computed);
}

TEST_F(ComputeCheckTest, ADeviceThatOthersUseIsNoFailure) {
  Program("exit 3\n");
  Run();
  EXPECT_THAT(check_.facts().outcomes, IsEmpty());
  EXPECT_THAT(check_.facts().in_use, SizeIs(6));
}

TEST_F(ComputeCheckTest, WithoutTheLibraryOrTheProgramNoneIsTried) {
  Run();
  EXPECT_THAT(check_.facts().off, HasSubstr("there is no " + folder_.path() + "/acme-compute"));
  LoadAgain();
  Program("echo 'acme-compute: there is no libacme.so' >&2; exit 4\n");
  Run();
  EXPECT_EQ(check_.facts().off, "there is no libacme.so");
  Run();
  EXPECT_LE(Started().size(), 4u) << "those that had begun";
}

TEST_F(ComputeCheckTest, WhatAProgramPrintsIsShortenedAndPrintable) {
  Program("printf 'acme-compute: \\033[31m%01000d\\n' 7 >&2; exit 1\n");
  Run();
  const std::string& why = check_.facts().outcomes.at(report_.devices[0].id).why;
  EXPECT_LE(why.size(), 400u);
  EXPECT_EQ(why.find('\033'), std::string::npos);
}

TEST_F(ComputeCheckTest, ADriverThatIsUnloadedEndsItsPrograms) {
  Program("exec sleep 600\n");
  OnLoop([this] {
    check_.Follow(report_, inventory_);
    inventory_.vendors[0].driver = nullptr;
    check_.Follow(report_, inventory_);
  });
  EXPECT_EQ(check_.facts(), ComputeFacts());
}

TEST_F(ComputeCheckTest, CanBeSwitchedOff) {
  Program("exit 0\n");
  api::NodeConfig config;
  config.validation.compute = false;
  OnLoop([&] { check_.Configure(config); });
  Run();
  EXPECT_EQ(check_.facts().off, "validation.compute is off");
  EXPECT_THAT(Started(), IsEmpty());
}

}  // namespace
}  // namespace penstock::app
