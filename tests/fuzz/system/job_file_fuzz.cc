// Fuzzes the files in which a workload manager lists the jobs of a device: the user who writes them
// may be hostile.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/core/printable.h"
#include "node/attribute/job_files.h"

namespace attribute = penstock::node::attribute;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  for (const bool cut : {false, true}) {
    const attribute::JobList list = attribute::ParseJobs(text, cut);
    if (list.jobs.size() > attribute::kMostJobsOfDevice) std::abort();
    std::string again;
    for (const std::string& job : list.jobs) {
      const bool odd = job.empty() || job.size() > attribute::kLongestJob ||
                       !penstock::base::IsPrintable(job) || std::ranges::count(list.jobs, job) != 1;
      if (odd) std::abort();
      again += job + "\n";
    }
    // The jobs of a list are those of a file with just these lines.
    if (attribute::ParseJobs(again, false).jobs != list.jobs) std::abort();
  }
  return 0;
}
