// The MIG manager's list of services: its default file, and what may not be in a list.
#include "api/compat/nvidia/gpu_clients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/testing/must.h"

namespace penstock::api::compat {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> ReadClients(const std::string& text) {
  return base::Must(TranslateGpuClients(text, "clients.yaml"));
}

std::string ClientsError(const std::string& text) {
  const auto read = TranslateGpuClients(text, "clients.yaml");
  return read.ok() ? "" : read.error().message();
}

std::string Listed(const std::string& item) {
  return "version: v1\nsystemd-services:\n- " + item + "\n";
}

TEST(GpuClients, ReadsTheServicesInTheirOrder) {
  EXPECT_THAT(
      ReadClients("version: v1\nsystemd-services:\n  - nvsm.service\n  - nvidia-dcgm.service\n  - "
                  "nvsm.service\n"),
      ElementsAre("nvsm.service", "nvidia-dcgm.service"));
  EXPECT_THAT(ReadClients(R"({"version": "v1", "systemd-services": ["a\\x2db.service"]})"),
              ElementsAre("a\\x2db.service"));
}

TEST(GpuClients, AFileThatListsNothingStopsNothing) {
  for (const char* text : {"", "version: v1\n", "version: v1\nsystemd-services: []\n"})
    EXPECT_THAT(ReadClients(text), IsEmpty()) << text;
}

TEST(GpuClients, RefusesWhatIsNoServiceWithItsPlace) {
  EXPECT_THAT(ClientsError(Listed("nvidia-dcgm.socket")),
              AllOf(HasSubstr("clients.yaml:3:3: systemd-services[0]: \"nvidia-dcgm.socket\""),
                    HasSubstr("names end with .service")));
  for (const char* item :
       {"/etc/x.service", "../x.service", "\"-.service\"", "\"--root=.service\"", "\"*.service\"",
        "\"a b.service\"", "user@1000.service", "getty@.service", ".service", "\"a\\nb.service\"",
        "\"a;b.service\"", "\"$x.service\"", "dcgm", "3", "{a: b}"})
    EXPECT_THAT(ClientsError(Listed(item)), HasSubstr("systemd-services[0]: ")) << item;
  EXPECT_THAT(ClientsError(Listed(std::string(300, 'a') + ".service")), HasSubstr("longer than"));
}

TEST(GpuClients, RefusesAListThatIsTooLong) {
  std::string text = "version: v1\nsystemd-services:\n";
  for (int i = 0; i < 33; ++i) text += "- a" + std::to_string(i) + ".service\n";
  EXPECT_THAT(ClientsError(text), HasSubstr("systemd-services[32]: is one too many"));
}

TEST(GpuClients, RefusesAnotherFile) {
  EXPECT_THAT(ClientsError("version: v2\n"), HasSubstr("version: is \"v2\""));
  EXPECT_THAT(ClientsError("systemd-services: [a.service]\n"), HasSubstr("version"));
  EXPECT_THAT(ClientsError("version: v1\nsystemd_services: [a.service]\n"),
              HasSubstr("did you mean"));
  EXPECT_THAT(ClientsError("version: v1\nsystemd-services: a.service\n"),
              HasSubstr("systemd-services"));
  EXPECT_THAT(ClientsError("- a\n"), HasSubstr("clients.yaml:1"));
}

}  // namespace
}  // namespace penstock::api::compat
