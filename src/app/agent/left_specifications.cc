#include "app/agent/left_specifications.h"

#include <cerrno>
#include <utility>

#include <unistd.h>

#include "base/core/strings.h"
#include "base/log.h"
#include "node/cdi/folder.h"
#include "os/core/file.h"

namespace penstock::app {

LeftSpecifications::LeftSpecifications(base::Executor& control, base::Executor& io,
                                       const node::ledger::Ledger& ledger, std::string folder,
                                       const std::set<std::string>& kinds, std::string hook,
                                       std::function<void()> changed)
    : control_(control),
      io_(io),
      ledger_(ledger),
      folder_(std::move(folder)),
      hook_(std::move(hook)),
      changed_(std::move(changed)),
      files_(node::cdi::OwnFiles(os::ListDirectory(folder_).value_or({}), kinds)) {
  std::erase_if(files_, [this](const std::string& file) {
    return node::cdi::IsOfAnotherPlugin(folder_, file, hook_);
  });
}

void LeftSpecifications::HoldersKnown() {
  known_ = true;
  for (const node::ledger::Lease& lease : ledger_.Get()->leases) holders_.insert(lease.id);
  RemoveIfFree();
}

void LeftSpecifications::LedgerChanged() {
  if (!known_ || files_.empty()) return;
  const auto ledger = ledger_.Get();
  std::erase_if(holders_, [&](const std::string& id) { return ledger->FindLease(id) == nullptr; });
  RemoveIfFree();
}

void LeftSpecifications::RemoveIfFree() {
  if (files_.empty() || !holders_.empty() || std::exchange(removing_, true)) return;
  const auto removed = lifetime_.Guard(
      [this](const std::vector<std::string>& left, const std::string& why) { Removed(left, why); });
  io_.Post([removed, &control = control_, folder = folder_, files = files_, hook = hook_] {
    std::vector<std::string> left, why;
    for (const std::string& file : files) {
      // Another plugin may have begun to serve meanwhile.
      if (node::cdi::IsOfAnotherPlugin(folder, file, hook)) continue;
      const std::string path = folder + "/" + file;
      if (::unlink(path.c_str()) == 0 || errno == ENOENT) continue;
      why.push_back(base::ErrnoError(errno, "remove " + path).message());
      left.push_back(file);
    }
    control.Post([removed, left, why = base::Join(why, "; ")] { removed(left, why); });
  });
}

void LeftSpecifications::Removed(std::vector<std::string> left, const std::string& why) {
  removing_ = false;
  if (left.empty())
    base::Log(base::kInfo, "CDI specifications removed, since none are written any more",
              {{"folder", folder_}, {"files", base::Join(files_, ", ")}});
  else if (why != why_not_)
    base::Log(base::kWarn, "cannot remove CDI specifications", {{"why", why}});
  files_ = std::move(left);
  why_not_ = why;
  changed_();
}

std::string LeftSpecifications::problem() const {
  if (files_.empty()) return "";
  const std::string until =
      why_not_.empty()
          ? "the pods and runs that held devices when this agent started have released them, since "
            "their containers may be created by these files again"
          : "they can be removed (" + why_not_ + ")";
  return "files of an earlier agent stay in " + folder_ + " until " + until + ": " +
         base::Join(files_, ", ");
}

}  // namespace penstock::app
