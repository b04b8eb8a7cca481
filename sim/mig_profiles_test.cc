// Tests the MIG profiles of the catalogue: the names that NVIDIA publishes, and the rule by which
// names follow from sizes.
#include "sim/mig_profiles.h"

#include <cmath>
#include <map>
#include <string>

#include <gmock/gmock.h>

#include "sim/testing.h"

namespace penstock::sim {
namespace {

using testing::BuiltCatalogue;

std::string NamesOf(const Model& model) {
  std::string names;
  for (const SimMigProfile& profile : model.mig.profiles)
    if (profile.name[0]) names += (names.empty() ? "" : " ") + std::string(profile.name);
  return names;
}

// In the order of NVML's numbers. From the tables of NVIDIA's MIG user guide and, for those that it
// lacks, the default layouts of mig-parted; those of the H20-3e and the B100 follow from the rule.
const std::map<std::string, std::string>& PublishedNames() {
  const std::string a100_40 = "1g.5gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb 1g.5gb+me 1g.10gb",
                    of_80 = "1g.10gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb 1g.10gb+me 1g.20gb",
                    of_94 = "1g.12gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb 1g.12gb+me 1g.24gb",
                    of_96 = "1g.12gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb 1g.12gb+me 1g.24gb",
                    of_141 = "1g.18gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb 1g.18gb+me 1g.35gb",
                    of_180 = "1g.23gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb 1g.23gb+me 1g.45gb";
  static const std::map<std::string, std::string> kNames = {
      {"a30-pcie-24gb", "1g.6gb 2g.12gb 4g.24gb 1g.6gb+me 2g.12gb+me"},
      {"a100-sxm4-40gb", a100_40},
      {"a100-pcie-40gb", a100_40},
      {"a800-sxm4-40gb", a100_40},
      {"a100-sxm4-80gb", of_80},
      {"a100-pcie-80gb", of_80},
      {"a100x", of_80},
      {"a800-sxm4-80gb", of_80},
      {"a800-pcie-80gb", of_80},
      {"ax800", of_80},
      {"h100-sxm-80gb", of_80},
      {"h100-pcie-80gb", of_80},
      {"h800-sxm-80gb", of_80},
      {"h800-pcie-80gb", of_80},
      {"h100-nvl-94gb", of_94},
      {"h800-nvl-94gb", of_94},
      {"gh200-96gb", of_96},
      {"h20-96gb", of_96},
      {"gh200-144gb", "1g.18gb 2g.36gb 3g.72gb 4g.72gb 7g.144gb 1g.18gb+me 1g.36gb"},
      {"h200-sxm-141gb", of_141},
      {"h200-nvl-141gb", of_141},
      {"h20-141gb", of_141},
      {"b200-sxm-180gb", of_180},
      {"b100-sxm-180gb", of_180},
      {"gb200-186gb", "1g.23gb 2g.47gb 3g.93gb 4g.93gb 7g.186gb 1g.23gb+me 1g.47gb"},
      {"b300-sxm-269gb", "1g.34gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb 1g.34gb+me 1g.67gb"},
      {"rtx-pro-6000-blackwell",
       "1g.24gb 2g.48gb 4g.96gb 1g.24gb+me 1g.24gb+gfx 2g.48gb+gfx 4g.96gb+gfx 1g.24gb-me "
       "2g.48gb-me 1g.24gb+me.all 2g.48gb+me.all"},
  };
  return kNames;
}

TEST(MigProfiles, HaveThePublishedNames) {
  std::map<std::string, std::string> names;
  for (const auto& [name, model] : BuiltCatalogue())
    if (model.mig.devices > 0) names[name] = NamesOf(model);
  EXPECT_EQ(names, PublishedNames());
}

// The rule of NVIDIA's go-nvlib: the eighths of the GPU's memory that the instance begins, as a
// part of the GPU's whole GB.
TEST(MigProfiles, AreNamedAfterTheirMemory) {
  for (const auto& [name, model] : BuiltCatalogue())
    for (const SimMigProfile& profile : model.mig.profiles) {
      if (!profile.name[0]) continue;
      const double total = static_cast<double>(model.memory_total);
      const double eighths = std::ceil(8 * static_cast<double>(profile.memory_mib) / total);
      const long gigabytes = std::lround(eighths / 8 * std::ceil(total / 1024));
      const std::string text = profile.name;
      EXPECT_EQ(text.substr(3, text.find("gb") - 3), std::to_string(gigabytes))
          << name << " " << text;
    }
}

TEST(MigProfiles, FitIntoTheirGpuAsOftenAsTheySay) {
  for (const auto& [name, model] : BuiltCatalogue())
    for (const SimMigProfile& profile : model.mig.profiles) {
      if (!profile.name[0]) continue;
      EXPECT_LE(profile.most * profile.memory_mib, model.memory_total) << name << profile.name;
      EXPECT_LE(profile.most * profile.multiprocessors, model.multiprocessors)
          << name << profile.name;
      EXPECT_LE(profile.decoders, model.decoders) << name << profile.name;
      EXPECT_LE(profile.jpegs, model.jpegs) << name << profile.name;
      EXPECT_LE(profile.encoders, model.encoders) << name << profile.name;
      EXPECT_LE(profile.ofas, model.ofas) << name << profile.name;
    }
}

}  // namespace
}  // namespace penstock::sim
