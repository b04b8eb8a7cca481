// Reads what penstock-probe prints in a container.
#include "node/validate/container_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/core/strings.h"

namespace penstock::node::validate {
namespace {

/// Explains why a file cannot be opened, naming the step that failed.
std::string WhyNot(const std::string& file, bool device, int error) {
  if (error == ENOENT) return file + " is not in the container: it was not injected";
  if (error == EPERM && device)
    return file + " exists but cannot be opened: the container's control group does not allow it";
  return file + " cannot be opened: " + std::strerror(error);
}

std::map<std::string, int> AnswersIn(std::string_view output, const PromisedFiles& promised) {
  std::map<std::string, int> answers;
  for (const std::string& line : base::Split(output, '\n')) {
    const auto blank = line.find(' ');
    if (blank == std::string::npos || !promised.files.contains(line.substr(blank + 1))) continue;
    if (const auto error = base::ParseInt(line.substr(0, blank)))
      answers[line.substr(blank + 1)] = static_cast<int>(*error);
  }
  return answers;
}

}  // namespace

std::vector<std::string> PromisedFiles::paths() const {
  std::vector<std::string> paths;
  for (const auto& [path, device] : files) paths.push_back(path);
  return paths;
}

std::size_t PromisedFiles::devices() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(files, [](const auto& file) { return file.second; }));
}

PromisedFiles PromiseOf(const api::cdi::CdiEdits& edits) {
  PromisedFiles promised;
  for (const auto& mount : edits.mounts)
    if (mount.host_path.starts_with('/')) promised.files[mount.container_path] = false;
  for (const auto& node : edits.nodes) promised.files[node.path] = true;
  return promised;
}

base::Result<OpenedFiles> WhatOpened(const PromisedFiles& promised, std::string_view output) {
  const auto answers = AnswersIn(output, promised);
  if (answers.size() != promised.files.size())
    return base::Error(base::Code::kUnavailable, "the answer is not complete");
  OpenedFiles opened;
  for (const bool devices : {true, false}) {
    for (const auto& [file, device] : promised.files) {
      const int error = answers.at(file);
      if (device != devices || error == 0 || error == EBUSY) continue;
      const bool unserved = device && error == ENODEV;
      if (error != ENXIO && !unserved) {
        opened.why_not.push_back(WhyNot(file, device, error));
      } else if (device) {  // a mounted socket cannot be opened like a file either
        opened.unserved.push_back(file);
      }
    }
  }
  return opened;
}

}  // namespace penstock::node::validate
