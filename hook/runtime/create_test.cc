#include "hook/runtime/create.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hook/runtime/specs.h"
#include "os/core/file.h"
#include "os/core/testing/temporary_folder.h"

namespace penstock::hook::runtime {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kSpecification =
    R"({"cdiVersion":"0.7.0","kind":"nvidia.com/gpu","devices":[
  {"name":"0","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia0","type":"c","major":195,"minor":0}]}},
  {"name":"all","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia0","type":"c","major":195,"minor":0}]}}],
  "containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=void"],"deviceNodes":[{"path":"/dev/nvidiactl","type":"c","major":195,"minor":255}],
  "mounts":[{"hostPath":"/h/libcuda.so.550.54.15","containerPath":"/usr/lib/libcuda.so.550.54.15","options":["ro","rbind"]},
            {"hostPath":"/h/libnvidia-encode.so.550.54.15","containerPath":"/usr/lib/libnvidia-encode.so.550.54.15","options":["ro"]}],
  "hooks":[{"hookName":"createContainer","path":"/usr/bin/penstock-hook","args":["penstock-hook","enable-cuda-compat",
            "--host-driver-version=550.54.15","--host-cuda-version=12.4"]}],"additionalGids":[44]}})";

class Create : public testing::Test {
 protected:
  Create() {
    config_.spec_dirs = {folder_.path() + "/etc", folder_.path() + "/run"};
    config_.file = "/etc/nvidia-container-runtime/config.toml";
    for (const std::string& folder : {config_.spec_dirs[0], config_.spec_dirs[1], bundle_})
      EXPECT_TRUE(os::MakeDirectories(folder).ok());
    Write(config_.spec_dirs[1] + "/nvidia.json", kSpecification);
  }

  void Write(const std::string& path, std::string_view text, unsigned mode = 0644) {
    ASSERT_TRUE(os::WriteFileAtomically(path, text, mode).ok());
  }
  void WriteBundle(const std::string& environment) {
    Write(file_, R"({"process":{"env":[)" + environment + "]}}");
  }
  std::string Text() { return *os::ReadFile(file_); }

  /// The error's message; empty on success.
  std::string Prepare() {
    RunLog log({log_, false, false});
    const auto status = PrepareBundle(bundle_, config_, log);
    return status.ok() ? "" : status.error().message();
  }
  std::string Logged() { return os::ReadFile(log_).value_or(""); }

  os::TemporaryFolder folder_;
  Config config_;
  std::string bundle_ = folder_.path() + "/bundle", file_ = bundle_ + "/config.json",
              log_ = folder_.path() + "/log";
};

TEST_F(Create, GivesWhatIsAskedFor) {
  WriteBundle(R"("NVIDIA_VISIBLE_DEVICES=0")");
  ASSERT_EQ(Prepare(), "");
  EXPECT_THAT(Text(), AllOf(HasSubstr("NVIDIA_VISIBLE_DEVICES=void"), HasSubstr("/dev/nvidia0"),
                            HasSubstr("/dev/nvidiactl"), HasSubstr("libcuda.so"),
                            HasSubstr("enable-cuda-compat"), HasSubstr("\"additionalGids\":[44]")));
  EXPECT_THAT(Text(), Not(HasSubstr("libnvidia-encode"))) << "video was not asked for";
  const std::string once = Text();
  ASSERT_EQ(Prepare(), "");
  EXPECT_EQ(Text(), once);
}

TEST_F(Create, LeavesTheFileAloneWhereNothingIsAskedFor) {
  WriteBundle(R"("NVIDIA_VISIBLE_DEVICES=void")");
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat(file_.c_str(), &before), 0);
  ASSERT_EQ(Prepare(), "");
  ASSERT_EQ(::stat(file_.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST_F(Create, KeepsModeAndLeavesNothingBehind) {
  WriteBundle(R"("NVIDIA_VISIBLE_DEVICES=all")");
  ASSERT_EQ(::chmod(file_.c_str(), 0640), 0);
  ASSERT_EQ(Prepare(), "");
  struct stat status {};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
  EXPECT_THAT(*os::ListDirectory(bundle_), ElementsAre("config.json"));
}

TEST_F(Create, ChangesNothingWhereAnythingIsWrong) {
  const std::pair<std::string, const char*> cases[] = {
      {R"("NVIDIA_VISIBLE_DEVICES=7")", "there is no CDI device \"nvidia.com/gpu=7\""},
      {R"("NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=x")",
       "penstock cdi generate --output=/var/run/cdi/nvidia.yaml"},
      {R"("NVIDIA_VISIBLE_DEVICES=../../etc")", "not a device name"},
      {R"("NVIDIA_VISIBLE_DEVICES=0","NVIDIA_REQUIRE_CUDA=cuda>=13.0")", "the image requires"},
      {R"("NVIDIA_VISIBLE_DEVICES=0","NVIDIA_DRIVER_CAPABILITIES=magic")",
       "NVIDIA_DRIVER_CAPABILITIES requests"}};
  for (const auto& [environment, message] : cases) {
    WriteBundle(environment);
    const std::string before = Text();
    EXPECT_THAT(Prepare(), HasSubstr(message));
    EXPECT_EQ(Text(), before);
  }
}

TEST_F(Create, SaysWhatIsWrongWithSpecificationsWhereADeviceIsMissing) {
  Write(config_.spec_dirs[1] + "/nvidia.json",
        R"({"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","colour":1,
    "devices":[{"name":"0","containerEdits":{"env":["A=1"]}}]})");
  WriteBundle(R"("NVIDIA_VISIBLE_DEVICES=0")");
  EXPECT_THAT(Prepare(), AllOf(HasSubstr("nvidia.com/gpu=0"), HasSubstr("nvidia.json"),
                               HasSubstr("colour"), HasSubstr("penstock cdi generate")));
  Write(config_.spec_dirs[1] + "/nvidia.json", kSpecification);
  Write(config_.spec_dirs[1] + "/second.json", kSpecification);
  EXPECT_THAT(Prepare(), HasSubstr("second.json"));
}

TEST_F(Create, NoneIsTheDriverWithoutDevices) {
  WriteBundle(R"("NVIDIA_VISIBLE_DEVICES=none","NVIDIA_DRIVER_CAPABILITIES=all")");
  ASSERT_EQ(Prepare(), "");
  EXPECT_THAT(Text(), AllOf(HasSubstr("libcuda.so"), HasSubstr("libnvidia-encode"),
                            HasSubstr("/dev/nvidiactl"), HasSubstr("=void")));
  EXPECT_THAT(Text(), Not(HasSubstr("/dev/nvidia0")));
}

TEST_F(Create, StartsWithoutWhatIsOnlyDesired) {
  WriteBundle(
      R"("NVIDIA_VISIBLE_DEVICES=0","NVIDIA_GDS=enabled","NVIDIA_DRIVER_CAPABILITIES=compute,compat32")");
  ASSERT_EQ(Prepare(), "");
  EXPECT_THAT(Logged(), AllOf(HasSubstr("starting the container without nvidia.com/gds=all"),
                              HasSubstr("starting the container without nvidia.com/compat32=all")));
  Write(config_.spec_dirs[0] + "/gds.yaml",
        "cdiVersion: 0.5.0\nkind: nvidia.com/gds\ndevices: [{name: all, containerEdits: {env: "
        "[GDS=here]}}]\n");
  WriteBundle(R"("NVIDIA_VISIBLE_DEVICES=0","NVIDIA_GDS=enabled")");
  ASSERT_EQ(Prepare(), "");
  EXPECT_THAT(Text(), HasSubstr("GDS=here"));
}

TEST_F(Create, DoesWhatTheAdministratorSwitchedOffNot) {
  config_.cuda_compat = config_.additional_gids = false;
  WriteBundle(R"("NVIDIA_VISIBLE_DEVICES=0")");
  ASSERT_EQ(Prepare(), "");
  EXPECT_THAT(Text(), AllOf(Not(HasSubstr("enable-cuda-compat")), Not(HasSubstr("additionalGids")),
                            HasSubstr("/dev/nvidia0")));
}

TEST_F(Create, TakesTheOlderRuntimesHookAwayAlsoWhereItGivesNothing) {
  Write(
      file_,
      R"({"annotations":{"io.kubernetes.cri.container-type":"container"},"process":{"env":["NVIDIA_VISIBLE_DEVICES=all"]},
    "hooks":{"prestart":[{"path":"/usr/bin/nvidia-container-runtime-hook"}]}})");
  ASSERT_EQ(Prepare(), "");
  EXPECT_THAT(Text(), HasSubstr("\"prestart\":[]"));
  EXPECT_THAT(Text(), Not(HasSubstr("/dev/nvidia0")));
  EXPECT_THAT(Logged(), HasSubstr("NVIDIA_VISIBLE_DEVICES is ignored"));
}

TEST_F(Create, ABundleWithoutAFileIsAnError) {
  EXPECT_THAT(Prepare(), HasSubstr(file_ + ": No such file or directory"));
}

TEST_F(Create, NeverLooksAtTheRoot) {
  ASSERT_EQ(::symlink("/proc/self/root", (bundle_ + "/rootfs").c_str()), 0);
  Write(file_, R"({"root":{"path":"rootfs"},"process":{"env":["NVIDIA_VISIBLE_DEVICES=0"]}})");
  ASSERT_EQ(Prepare(), "");
  EXPECT_THAT(Text(), HasSubstr(R"("root":{"path":"rootfs"})"));
}

TEST_F(Create, ReadsOnlySpecificationsThatCanMatter) {
  Write(config_.spec_dirs[0] + "/amd.json",
        R"({"cdiVersion":"0.5.0","kind":"amd.com/gpu","devices":[]})");
  Write(config_.spec_dirs[0] + "/nvidia.yml", kSpecification);
  Write(config_.spec_dirs[0] + "/.nvidia.json.tmp", kSpecification);
  const std::vector<std::string> names = {"nvidia.com/gpu=0"};
  const auto files = ReadSpecFiles(config_.spec_dirs, names);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].path, config_.spec_dirs[1] + "/nvidia.json");
  EXPECT_EQ(files[0].priority, 1);
}

TEST_F(Create, GivesAmdsDevicesBesideThoseOfNvidia) {
  Write(config_.spec_dirs[1] + "/amd.json",
        R"({"cdiVersion":"0.5.0","kind":"amd.com/gpu","devices":[
  {"name":"0","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD128","type":"c","major":226,"minor":128}]}},
  {"name":"GPU-00000000000000ab-1","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD129","type":"c","major":226,"minor":129}]}}],
  "containerEdits":{"deviceNodes":[{"path":"/dev/kfd","type":"c","major":511,"minor":0}]}})");
  WriteBundle(R"("NVIDIA_VISIBLE_DEVICES=0","AMD_VISIBLE_DEVICES=0")");
  ASSERT_EQ(Prepare(), "");
  EXPECT_THAT(Text(),
              AllOf(HasSubstr("/dev/nvidia0"), HasSubstr("/dev/kfd"),
                    HasSubstr("/dev/dri/renderD128"), Not(HasSubstr("/dev/dri/renderD129"))));
  const std::string once = Text();
  ASSERT_EQ(Prepare(), "");
  EXPECT_EQ(Text(), once);
  WriteBundle(R"("AMD_VISIBLE_DEVICES=0xAB")");
  ASSERT_EQ(Prepare(), "");
  EXPECT_THAT(Text(), AllOf(HasSubstr("/dev/dri/renderD129"), HasSubstr("/dev/kfd"),
                            Not(HasSubstr("/dev/dri/renderD128"))));
  WriteBundle(R"("AMD_VISIBLE_DEVICES=1")");
  EXPECT_THAT(Prepare(),
              AllOf(HasSubstr("amd.com/gpu=1"), HasSubstr("--output=/var/run/cdi/amd.yaml")));
}

TEST_F(Create, AnImageInKubernetesGetsNoDevicesByItsVariable) {
  const std::string bundle =
      R"({"process":{"env":["KUBERNETES_SERVICE_HOST=10.0.0.1","AMD_VISIBLE_DEVICES=all,("]}})";
  Write(file_, bundle);
  EXPECT_EQ(Prepare(), "");
  EXPECT_EQ(Text(), bundle);
  EXPECT_THAT(Logged(), HasSubstr("AMD_VISIBLE_DEVICES is ignored"));
}

}  // namespace
}  // namespace penstock::hook::runtime
