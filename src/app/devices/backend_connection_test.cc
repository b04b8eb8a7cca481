#include "app/devices/backend_connection.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/all.h"
#include "device/testing/acme.h"
#include "os/testing/temporary_folder.h"

namespace penstock::app {
namespace {

constexpr char kDisplay[] = "0x030200", kBridge[] = "0x060400";

/// Its driver may be in places that it does not know.
class Anywhere : public device::testing::AcmeDialect {
 public:
  std::vector<std::string> DriverPaths(const device::Paths& paths) const override {
    return {paths.dev_root + "/dev/acmectl", paths.driver_root + "/usr/lib/libacme.so.1"};
  }
  device::DriverSign SignOfDriver(const device::Paths&) const override {
    return {.absent = "install Acme's driver"};
  }
};

class WithSign final : public Anywhere {
 public:
  device::DriverSign SignOfDriver(const device::Paths& paths) const override {
    return {paths.sysfs_root + "/module/acme", "load Acme's driver"};
  }
};

class MayStartTest : public ::testing::Test {
 protected:
  MayStartTest() {
    paths_.driver_root = paths_.dev_root = machine_.path();
    paths_.sysfs_root = machine_.path() + "/sys";
  }

  void PutPci(std::uint16_t vendor, const std::string& class_code) {
    const std::string function = "sys/bus/pci/devices/0000:07:00.0/";
    std::ostringstream number;
    number << "0x" << std::hex << vendor << "\n";
    machine_.Write(function + "vendor", number.str());
    machine_.Write(function + "device", "0x20b0\n");
    machine_.Write(function + "class", class_code + "\n");
  }

  /// What is reported without a worker; nothing where one starts.
  std::optional<std::string> Absent(const device::Dialect& dialect) const {
    const base::Status status = MayStart(dialect, paths_);
    if (status.ok()) return std::nullopt;
    EXPECT_EQ(status.error().code(), base::Code::kNotFound);
    return status.error().message();
  }

  const os::TemporaryFolder machine_;
  device::Paths paths_;
};

TEST_F(MayStartTest, NotOnAnEmptyMachine) {
  EXPECT_EQ(Absent(Anywhere()), "install Acme's driver");
  EXPECT_EQ(Absent(WithSign()), "");
}

TEST_F(MayStartTest, WithDevicesADriverThatCouldBeAnywhereIsLookedFor) {
  PutPci(Anywhere().pci_vendor(), kDisplay);
  EXPECT_EQ(Absent(Anywhere()), std::nullopt);
  EXPECT_EQ(Absent(WithSign()), "load Acme's driver");
}

TEST_F(MayStartTest, ABridgeIsNoDevice) {
  PutPci(Anywhere().pci_vendor(), kBridge);
  EXPECT_EQ(Absent(Anywhere()), "install Acme's driver");
}

TEST_F(MayStartTest, BesideAnotherVendorsDevicesNothingIsSaid) {
  PutPci(backend::Dialects().front()->pci_vendor(), kDisplay);
  EXPECT_EQ(Absent(Anywhere()), "");
  EXPECT_EQ(Absent(WithSign()), "");
}

TEST_F(MayStartTest, WhereAPathOfTheDriverIs) {
  machine_.Write("dev/acmectl", "");
  EXPECT_EQ(Absent(Anywhere()), std::nullopt);
  EXPECT_EQ(Absent(WithSign()), "");
  machine_.Write("sys/module/acme/version", "");
  EXPECT_EQ(Absent(WithSign()), std::nullopt);
}

TEST_F(MayStartTest, WhereALinkLeadsElsewhereInTheDriversRoot) {
  std::filesystem::create_directories(machine_.path() + "/usr/lib");
  std::filesystem::create_symlink("/etc/alternatives/no-such-libacme.so.1",
                                  machine_.path() + "/usr/lib/libacme.so.1");
  EXPECT_EQ(Absent(Anywhere()), std::nullopt);
}

TEST_F(MayStartTest, WhereTheConfigurationNamesALibrary) {
  paths_.library = "/opt/libacme.so.1";
  EXPECT_EQ(Absent(Anywhere()), std::nullopt);
}

}  // namespace
}  // namespace penstock::app
