#include "node/attribute/job_files.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/core/printable.h"
#include "os/foreign_folder.h"

namespace penstock::node::attribute {

namespace {

constexpr os::ForeignLimits kJobFolder{
    .entries = 16384, .files = kMostJobFiles, .bytes = kLongestJobFile};
/// Longer numbers are no device's.
constexpr std::size_t kLongestName = 21;

bool IsNumber(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// ^\d+(\.\d+)?$
bool IsJobFile(std::string_view name) {
  const auto dot = name.find('.');
  return name.size() <= kLongestName && IsNumber(name.substr(0, dot)) &&
         (dot == std::string_view::npos || IsNumber(name.substr(dot + 1)));
}

/// Splits off the first line, without its end.
std::string_view NextLine(std::string_view& text) {
  const auto end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

JobList ParseJobs(std::string_view text, bool cut, std::size_t most) {
  JobList list;
  if (cut) {
    list.problems.push_back("is longer than " + std::to_string(kLongestJobFile) +
                            " bytes; the rest is ignored");
    text = text.substr(0, text.rfind('\n') + 1);  // the last line may not be whole
  }
  bool long_line = false;
  while (!text.empty()) {
    const std::string_view line = NextLine(text);
    long_line = long_line || line.size() > kLongestJob;
    if (line.empty() || line.size() > kLongestJob) continue;
    // What a page would show in the same way is the same job: no series may occur twice.
    std::string job = base::Printable(line);
    if (std::ranges::find(list.jobs, job) != list.jobs.end()) continue;
    if (list.jobs.size() == most) {
      list.problems.push_back("lists more jobs than the " + std::to_string(most) +
                              " that are read; the rest is ignored");
      break;
    }
    list.jobs.push_back(std::move(job));
  }
  if (long_line)
    list.problems.push_back("has a line of more than " + std::to_string(kLongestJob) +
                            " bytes, which is no job");
  return list;
}

JobFolder ReadJobFolder(const std::string& folder) {
  JobFolder read;
  const auto found = os::ReadForeignFolder(folder, kJobFolder, IsJobFile);
  if (!found.ok()) {
    read.problems.push_back(found.error().code() == base::Code::kNotFound
                                ? "the directory does not exist yet"
                                : found.error().message());
    return read;
  }
  if (found->more_entries)
    read.problems.push_back("the directory has more than " + std::to_string(kJobFolder.entries) +
                            " entries; some are ignored");
  if (found->more_files > 0)
    read.problems.push_back("there are more than " + std::to_string(kMostJobFiles) +
                            " files of devices; the last are ignored");
  std::size_t left = kMostJobs;
  for (const os::ForeignFile& file : found->files) {
    if (left == 0) {
      read.problems.push_back("all devices together have more than " + std::to_string(kMostJobs) +
                              " jobs; the last are ignored");
      break;
    }
    const auto problem = [&](const std::string& what) {
      read.problems.push_back("file " + file.name + " " + what);
    };
    if (!file.text.ok()) {
      problem("was not read: " + file.text.error().message());
      continue;
    }
    JobList list = ParseJobs(*file.text, file.cut, std::min(kMostJobsOfDevice, left));
    std::ranges::for_each(list.problems, problem);
    left -= list.jobs.size();
    if (!list.jobs.empty()) read.jobs.emplace(file.name, std::move(list.jobs));
  }
  return read;
}

}  // namespace penstock::node::attribute
