// Tests the pools of nodes, the names of their DaemonSets and their images.
#include "operator/driver/pools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::cluster {
namespace {

using api::DriverSpec;
using testing::ElementsAre;
using testing::HasSubstr;

DriverNode Labelled(const std::string& name, const std::string& id, const std::string& version,
                    const std::string& kernel = "") {
  DriverNode node{name, {}, "", ""};
  node.labels["feature.node.kubernetes.io/system-os_release.ID"] = id;
  node.labels["feature.node.kubernetes.io/system-os_release.VERSION_ID"] = version;
  if (!kernel.empty()) node.labels["feature.node.kubernetes.io/kernel-version.full"] = kernel;
  return node;
}

DriverSpec Driver(bool precompiled = false) {
  DriverSpec driver;
  driver.name = "blue";
  driver.image = {"nvcr.io/nvidia", "driver", "580.95.05", "", {}};
  driver.precompiled = precompiled;
  return driver;
}

TEST(DriverPools, HaveTheNodesOfOneSystem) {
  const auto pools =
      PoolsOf(Driver(), {Labelled("n2", "ubuntu", "22.04"), Labelled("n1", "ubuntu", "22.04"),
                         Labelled("n3", "rhel", "9.4")});
  ASSERT_EQ(pools.nodes.size(), 2u);
  EXPECT_EQ(pools.nodes.begin()->first.Name(), "rhel9.4");
  EXPECT_EQ(pools.nodes.rbegin()->first.Name(), "ubuntu22.04");
  EXPECT_THAT(pools.nodes.rbegin()->second, ElementsAre("n1", "n2"));
}

TEST(DriverPools, HaveTheNodesOfOneKernelIfTheDriverIsCompiled) {
  const auto pools =
      PoolsOf(Driver(true), {Labelled("n1", "ubuntu", "22.04", "5.15.0-50-generic"),
                             Labelled("n2", "rhel", "9.4", "5.14.0-427.el9_4.x86_64")});
  ASSERT_EQ(pools.nodes.size(), 2u);
  const DriverPool& rhel = pools.nodes.begin()->first;
  const DriverPool& ubuntu = pools.nodes.rbegin()->first;
  EXPECT_EQ(rhel.Name(), "5.14.0-427.el9.4-rhel9.4");
  EXPECT_EQ(*DriverImage(Driver(true), ubuntu),
            "nvcr.io/nvidia/driver:580.95.05-5.15.0-50-generic-ubuntu22.04");
}

TEST(DriverPools, OfAnotherKernelIsKnownBeforeItBoots) {
  const DriverPool now{"ubuntu", "22.04", "ubuntu22.04", "5.15.0-50-generic"};
  const auto after = PoolAfterBoot(now, "5.15.0-112-generic");
  ASSERT_TRUE(after);
  EXPECT_EQ(*DriverImage(Driver(true), *after),
            "nvcr.io/nvidia/driver:580.95.05-5.15.0-112-generic-ubuntu22.04");
  for (const std::string& kernel :
       {std::string(), std::string("5.15.0-50-generic"), std::string("5.15:latest"),
        std::string("../evil"), std::string("x86_64"), std::string(65, '5')})
    EXPECT_FALSE(PoolAfterBoot(now, kernel)) << kernel;
  EXPECT_FALSE(PoolAfterBoot({"ubuntu", "22.04", "ubuntu22.04", ""}, "5.15.0-112-generic"))
      << "the driver is compiled";
}

TEST(DriverPools, KnowTheSystemFromTheNodesStatusWithoutLabels) {
  const auto tag = [](const std::string& os_image) {
    const auto pools = PoolsOf(Driver(), {{"n", {}, os_image, "6.1"}});
    return pools.nodes.empty() ? "" : pools.nodes.begin()->first.os_tag;
  };
  EXPECT_EQ(tag("Ubuntu 22.04.3 LTS"), "ubuntu22.04");
  EXPECT_EQ(tag("Debian GNU/Linux 12 (bookworm)"), "debian12");
  EXPECT_EQ(tag("Red Hat Enterprise Linux 9.4 (Plow)"), "rhel9.4");
  EXPECT_EQ(tag("Red Hat Enterprise Linux 10.1 (Coughlan)"), "rhel10");
  EXPECT_EQ(tag("Rocky Linux 9.3 (Blue Onyx)"), "rocky9");
  EXPECT_EQ(tag("SUSE Linux Enterprise Server 15 SP5"), "sles15.5");
  EXPECT_EQ(tag("Talos (v1.7)"), "");
}

TEST(DriverPools, LeaveOutANodeWhoseSystemIsNotKnownAndSayWhy) {
  DriverNode hostile = Labelled("n1", "ubuntu", "22.04/../x");
  const auto pools =
      PoolsOf(Driver(true), {hostile, Labelled("n2", "ubuntu", "22.04"), {"n3", {}, "", ""}});
  EXPECT_TRUE(pools.nodes.empty());
  ASSERT_EQ(pools.without.size(), 3u);
  EXPECT_THAT(pools.without[0].why, HasSubstr("operating system is not known"));
  EXPECT_THAT(pools.without[1].why, HasSubstr("kernel is not known"));
}

TEST(DriverPools, HaveDaemonSetsNamedLikeNvidias) {
  const DriverPool pool{"ubuntu", "22.04", "ubuntu22.04", ""};
  EXPECT_EQ(DaemonSetName(Driver(), pool), "nvidia-gpu-driver-blue-ubuntu22.04");
  DriverSpec policy = Driver();
  policy.name = "";
  EXPECT_EQ(DaemonSetName(policy, pool), "nvidia-driver-daemonset-ubuntu22.04");
  DriverSpec longer = Driver(), other = Driver();
  longer.name = std::string(100, 'a') + "1";
  other.name = std::string(100, 'a') + "2";
  EXPECT_EQ(DaemonSetName(longer, pool).size(), 63u);
  EXPECT_NE(DaemonSetName(longer, pool), DaemonSetName(other, pool));
}

TEST(DriverPools, HaveTheImageOfTheirSystem) {
  const DriverPool pool{"ubuntu", "22.04", "ubuntu22.04", ""};
  const auto image = [&pool](api::ImageParts parts) {
    DriverSpec driver;
    driver.image = std::move(parts);
    const auto found = DriverImage(driver, pool);
    return found.ok() ? *found : found.error().message();
  };
  EXPECT_EQ(image({"nvcr.io/nvidia", "driver", "580", "", {}}),
            "nvcr.io/nvidia/driver:580-ubuntu22.04");
  EXPECT_EQ(image({"nvcr.io/nvidia", "driver", "sha256:12", "", {}}),
            "nvcr.io/nvidia/driver@sha256:12");
  EXPECT_EQ(image({"", "mine:tag", "", "", {}}), "mine:tag");
  EXPECT_THAT(image({"nvcr.io/nvidia", "driver", "", "", {}}), HasSubstr("has no version"));
  EXPECT_THAT(image({"nvcr.io/nvidia", "", "580", "", {}}), HasSubstr("names no image"));
}

}  // namespace
}  // namespace penstock::cluster
