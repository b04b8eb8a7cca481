// Tests parsing of uevents, and the watch on a tree of plain files.
#include "os/watch/pci_watch.h"

#include <chrono>
#include <future>
#include <string>

#include <gtest/gtest.h>

#include "os/testing/temporary_folder.h"

namespace penstock::os {
namespace {

std::string Message(const std::string& head, const std::string& subsystem) {
  std::string text = head + '\0' + "ACTION=" + head.substr(0, head.find('@')) + '\0';
  text += "DEVPATH=/devices/pci0000:00/0000:00:1e.0" + std::string(1, '\0');
  return text + "SUBSYSTEM=" + subsystem + '\0' + "PCI_ID=10DE:1EB8" + '\0' + "SEQNUM=4711" + '\0';
}

TEST(Uevents, OfThePciBusAreChangesOfIt) {
  for (const char* action : {"add", "remove", "bind", "unbind"})
    EXPECT_TRUE(
        IsPciChange(Message(std::string(action) + "@/devices/pci0000:00/0000:00:1e.0", "pci")))
        << action;
  EXPECT_FALSE(IsPciChange(Message("change@/devices/pci0000:00/0000:00:1e.0", "pci")))
      << "no device was added or removed";
  EXPECT_FALSE(IsPciChange(Message("add@/devices/pci0000:00/0000:00:02.0/usb1", "usb")));
  EXPECT_FALSE(IsPciChange(Message("add@/bus/pci_express/drivers/pcieport", "pci_express")));
  for (const char* text : {"", "@", "add", "libudev", "SUBSYSTEM=pci"})
    EXPECT_FALSE(IsPciChange(text)) << text;
  EXPECT_FALSE(IsPciChange("add@/x SUBSYSTEM=pci")) << "inside another value";
}

TEST(PciWatch, SeesAFunctionComeAndGoInATreeOfFiles) {
  const TemporaryFolder folder;
  folder.Write("bus/pci/devices/0000:07:00.0/vendor", "0x10de\n");
  Loop loop("pci-watch-test");
  std::promise<void> came, went;
  int calls = 0;
  const PciWatch watch(loop, folder.path(), [&] {
    // Writing may cause several bursts for one change.
    if (!std::filesystem::exists(folder / "bus/pci/devices/0000:08:00.0")) {
      if (calls > 0) went.set_value();
      calls = 0;
    } else if (calls++ == 0) {
      came.set_value();
    }
  });
  loop.Start();
  folder.Write("bus/pci/devices/0000:08:00.0/vendor", "0x10de\n");
  EXPECT_EQ(came.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  std::filesystem::remove_all(folder / "bus/pci/devices/0000:08:00.0");
  EXPECT_EQ(went.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  loop.Stop();
}

}  // namespace
}  // namespace penstock::os
