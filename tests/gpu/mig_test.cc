// Compares the MIG profiles that the NVIDIA backend reports on this machine with those that
// nvidia-smi shows. Changes nothing; MIG mode may be on or off.
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/all.h"

namespace penstock {
namespace {

std::string Ask(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string text;
  for (char part[4096]; pipe != nullptr && std::fgets(part, sizeof part, pipe.get()) != nullptr;)
    text += part;
  return text;
}

/// A row of `nvidia-smi mig -lgip`.
struct Shown {
  std::string name;
  int most = 0, multiprocessors = 0, decoders = 0, jpegs = 0, ofas = 0;
  double gibibytes = 0;
};

/// By NVML's id.
std::map<std::string, Shown> ShownProfiles(const std::string& gpu) {
  static const std::regex kRow(
      R"(\|\s+\d+\s+MIG (\S+)\s+(\d+)\s+\d+/(\d+)\s+([\d.]+)\s+\w+\s+(\d+)\s+(\d+)\s+\d+\s+\|\n)"
      R"(\|\s+\d+\s+(\d+)\s+(\d+)\s+\|)");
  const std::string table = Ask("nvidia-smi mig -lgip -i " + gpu);
  std::cout << table;
  std::map<std::string, Shown> shown;
  for (std::sregex_iterator row(table.begin(), table.end(), kRow), end; row != end; ++row) {
    const std::smatch& match = *row;
    shown[match[2]] = {match[1],
                       std::stoi(match[3]),
                       std::stoi(match[5]),
                       std::stoi(match[6]),
                       std::stoi(match[7]),
                       std::stoi(match[8]),
                       std::stod(match[4])};
  }
  return shown;
}

/// Placements by NVML's id, of `nvidia-smi mig -lgipp`: "GPU  0 Profile ID 19 Placements: {0,1}:1".
std::map<std::string, std::vector<device::Placement>> ShownPlacements(const std::string& gpu) {
  static const std::regex kRow(R"(Profile ID\s+(\d+) Placements?\s*: \{([\d,]+)\}:(\d+))");
  const std::string text = Ask("nvidia-smi mig -lgipp -i " + gpu);
  std::cout << text;
  std::map<std::string, std::vector<device::Placement>> shown;
  for (std::sregex_iterator row(text.begin(), text.end(), kRow), end; row != end; ++row) {
    static const std::regex kNumber(R"(\d+)");
    const std::string starts = (*row)[2];
    for (std::sregex_iterator start(starts.begin(), starts.end(), kNumber); start != end; ++start)
      shown[(*row)[1]].push_back({std::stoi(start->str()), std::stoi((*row)[3])});
  }
  return shown;
}

int EnginesOf(const device::PartProfile& profile, const char* name) {
  const auto found = profile.engines.find(name);
  return found == profile.engines.end() ? 0 : found->second;
}

TEST(RealMig, ProfilesAreWhatNvidiaSmiShows) {
  device::Paths paths;
  if (const char* root = std::getenv("PENSTOCK_DRIVER_ROOT")) paths.driver_root = root;
  const auto backend = backend::MakeBackend("nvidia", paths);
  ASSERT_TRUE(backend->Open().ok());
  for (const std::string& address : backend->List().value_or({})) {
    const auto gpu = backend->Describe(address);
    ASSERT_TRUE(gpu.ok()) << gpu.error().ToString();
    const auto shown = ShownProfiles(address);
    const auto placements = ShownPlacements(address);
    std::map<std::string, const device::PartProfile*> ours;
    for (const device::PartProfile& profile : gpu->profiles)
      if (profile.within.empty()) ours[profile.name] = &profile;
    EXPECT_EQ(ours.size(), shown.size()) << gpu->model;
    for (const auto& [id, theirs] : shown) {
      ASSERT_TRUE(ours.contains(theirs.name)) << theirs.name;
      const device::PartProfile& profile = *ours[theirs.name];
      EXPECT_EQ(profile.most, theirs.most) << theirs.name;
      EXPECT_EQ(profile.capacity.compute_units, theirs.multiprocessors) << theirs.name;
      EXPECT_NEAR(static_cast<double>(profile.capacity.memory.mebibytes()) / 1024, theirs.gibibytes,
                  0.01)
          << theirs.name;
      EXPECT_EQ(EnginesOf(profile, "decoder"), theirs.decoders) << theirs.name;
      EXPECT_EQ(EnginesOf(profile, "jpeg"), theirs.jpegs) << theirs.name;
      EXPECT_EQ(EnginesOf(profile, "ofa"), theirs.ofas) << theirs.name;
      EXPECT_EQ(profile.placements, placements.at(id)) << theirs.name;
    }
  }
}

}  // namespace
}  // namespace penstock
