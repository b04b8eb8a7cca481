#include "os/process/open_files.h"

#include <algorithm>

#include "os/core/file.h"
#include "os/process/process.h"

namespace penstock::os {

std::vector<pid_t> ProcessesWith(const std::string& proc, const std::vector<std::string>& paths,
                                 std::size_t most) {
  std::vector<pid_t> found;
  std::size_t read = 0;
  for (const pid_t pid : ListProcesses(proc)) {
    const std::string folder = proc + "/" + std::to_string(pid) + "/fd";
    const auto names = ListDirectory(folder);
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      if (++read > most) return found;
      const auto target = ReadLink(folder + "/" + name);
      if (!target.ok()) continue;
      if (std::ranges::none_of(paths,
                               [&](const std::string& path) { return target->ends_with(path); }))
        continue;
      found.push_back(pid);
      break;
    }
  }
  return found;
}

}  // namespace penstock::os
