// Reads which jobs of a workload manager run on which devices, from a folder in which the workload
// manager keeps a file for each device.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::node::attribute {

/// The jobs of devices, by the name of the device's file (device::Exporter::JobFile). The jobs of a
/// device differ; each is UTF-8 text without control characters.
using DeviceJobs = std::map<std::string, std::vector<std::string>, std::less<>>;

// The limits of what is read: each job is a further copy of all series of a device.
inline constexpr std::size_t kMostJobFiles = 256, kLongestJobFile = 16384;  ///< files; bytes
inline constexpr std::size_t kMostJobsOfDevice = 64, kMostJobs = 1024;
inline constexpr std::size_t kLongestJob = 256;  ///< bytes

/// The content of a file.
struct JobList {
  std::vector<std::string> jobs;      ///< in the file's order
  std::vector<std::string> problems;  ///< what was left out: "has a line of more than ..."
};

/// Reads a job from each line. `cut`: the file has more than this text. At most `most` jobs.
JobList ParseJobs(std::string_view text, bool cut, std::size_t most = kMostJobsOfDevice);

struct JobFolder {
  DeviceJobs jobs;                    ///< devices without jobs are left out
  std::vector<std::string> problems;  ///< what was not read, and why
};

/// Reads the files that are named as devices are, by a number or two numbers ("3", "3.9"), and have
/// a job in each line. All other files are ignored; a problem with one file does not concern the
/// others. The folder and all in it are untrusted. Blocks: call it on an I/O thread.
JobFolder ReadJobFolder(const std::string& folder);

}  // namespace penstock::node::attribute
