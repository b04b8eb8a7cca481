// Attaches a program to each closed group by a link (bpf_link), with a kernel map of the exempted
// groups.
#include "os/cgroup/cgroup_closed.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/cgroup/cgroup_bpf.h"

namespace penstock::os {
namespace {

base::Result<UniqueFd> OpenGroup(const std::string& group, std::uint64_t& id) {
  UniqueFd folder(::open(group.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  if (!folder || ::fstat(folder.get(), &status) != 0)
    return base::ErrnoError(errno, "open the control group " + group);
  id = status.st_ino;  // the kernel's id of the group, on 64-bit machines
  return folder;
}

}  // namespace

base::Result<ClosedDevices> ClosedDevices::Open() {
  ASSIGN(UniqueFd admitted, MakeIdMap());
  return ClosedDevices(std::move(admitted));
}

std::map<std::string, base::Status> ClosedDevices::Close(const std::vector<std::string>& groups,
                                                         const std::vector<DeviceRange>& devices) {
  std::map<std::string, base::Status> closed;
  base::Status made;
  std::map<std::string, Closed> before;
  if (!program_ || devices != devices_) {
    auto program = BuildClosingProgram(devices, admitted_.get());
    auto loaded =
        program.ok() ? LoadDeviceProgram(*program) : base::Result<UniqueFd>(program.error());
    if (loaded.ok()) {
      program_ = *std::move(loaded);
      devices_ = devices;
      before = std::exchange(closed_, {});  // stay in force until the new ones are
    } else {
      made = loaded.error();
    }
  }
  for (const std::string& group : groups) closed[group] = made.ok() ? CloseOne(group) : made;
  std::erase_if(closed_, [&closed](const auto& one) { return !closed.contains(one.first); });
  return closed;
}

base::Status ClosedDevices::CloseOne(const std::string& group) {
  std::uint64_t id = 0;
  const auto folder = OpenGroup(group, id);
  if (!folder.ok()) {
    closed_.erase(group);
    return folder.error();
  }
  if (const auto known = closed_.find(group); known != closed_.end() && known->second.id == id)
    return {};
  ASSIGN(UniqueFd link, LinkDeviceProgram(folder->get(), program_.get()));
  closed_.insert_or_assign(group, Closed{id, std::move(link)});
  return {};
}

base::Status ClosedDevices::Admit(const std::string& group) {
  std::uint64_t id = 0;
  ASSIGN(const UniqueFd folder, OpenGroup(group, id));
  TRY(AddId(admitted_.get(), id));
  ids_[group] = id;
  return {};
}

void ClosedDevices::Forget(const std::string& group) {
  const auto known = ids_.extract(group);
  if (known) RemoveId(admitted_.get(), known.mapped());
}

}  // namespace penstock::os
