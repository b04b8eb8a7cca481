// Compares node::partition::Pack with first fit: how many requests for parts an A100 or eight of
// them reject, over random sequences of arrivals and departures.
//
// usage: bench-packing [SEQUENCES]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "node/partition/testing/arrivals.h"

namespace {

using namespace penstock::node::partition;

/// The ratio of the numbers of rejected requests, of batches of sequences.
constexpr int kBatches = 20;

struct Rejections {
  std::int64_t first = 0, packed = 0;
};

void Compare(const char* mix, const testing::ArrivalsInput& input, int sequences) {
  std::vector<double> ratios;
  Rejections all;
  std::uint32_t seed = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    Rejections here;
    for (int i = 0; i < sequences / kBatches; ++i, ++seed) {
      here.first += testing::Rejected(input, testing::FirstFit, seed);
      here.packed += testing::Rejected(input, testing::PackedFit, seed);
    }
    all.first += here.first;
    all.packed += here.packed;
    if (here.first > 0)
      ratios.push_back(static_cast<double>(here.packed) / static_cast<double>(here.first));
  }
  if (ratios.empty()) return;
  std::ranges::sort(ratios);
  const double requests = static_cast<double>(seed) * input.requests;
  std::printf("| %d | %s | %.1f | %.2f %% | %.2f %% | %.2f | %.2f to %.2f |\n", input.devices, mix,
              input.load, 100 * static_cast<double>(all.first) / requests,
              100 * static_cast<double>(all.packed) / requests,
              static_cast<double>(all.packed) / static_cast<double>(all.first), ratios.front(),
              ratios.back());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const int sequences = argc > 1 ? std::atoi(argv[1]) : 10'000;
  if (sequences < kBatches) {
    std::fprintf(stderr, "usage: bench-packing [SEQUENCES]; at least %d\n", kBatches);
    return 2;
  }
  std::puts("| GPUs | requests | load | rejected by first fit | by Pack | ratio | of 20 batches |");
  std::puts("|---|---|---|---|---|---|---|");
  for (const int devices : {1, 8})
    for (const double load : {0.3, 0.5, 0.7, 0.9}) {
      const int requests = devices == 1 ? 100 : 400;
      Compare("equal slices", {devices, load, testing::EqualSlices(), requests}, sequences);
      Compare("equal numbers", {devices, load, testing::EqualNumbers(), requests}, sequences);
    }
}
