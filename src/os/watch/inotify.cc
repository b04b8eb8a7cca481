// inotify_add_watch returns the same descriptor for the same folder, so one descriptor may have
// several watchers.
#include "os/watch/inotify.h"

#include <array>
#include <cerrno>
#include <set>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <unistd.h>

namespace penstock::os {

std::shared_ptr<Inotify> Inotify::Of(Loop& loop) {
  auto one = loop.inotify().lock();
  if (one == nullptr) loop.inotify() = one = std::make_shared<Inotify>(loop);
  return one;
}

Inotify::~Inotify() {
  if (fd_) loop_.Unwatch(fd_.get());
}

bool Inotify::Open() {
  if (fd_) return true;
  fd_.Reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!fd_) return false;
  if (!loop_.Watch(fd_.get(), EPOLLIN, [this](std::uint32_t) { Read(); }).ok()) fd_.Reset();
  return static_cast<bool>(fd_);
}

int Inotify::Add(const std::string& path, std::uint32_t events, Watcher& watcher) {
  if (!Open()) return -1;
  const int watch = ::inotify_add_watch(fd_.get(), path.c_str(), events | IN_MASK_ADD);
  if (watch < 0) return -1;
  const auto [first, last] = watchers_.equal_range(watch);
  for (auto at = first; at != last; ++at)
    if (at->second == &watcher) return watch;
  watchers_.emplace(watch, &watcher);
  return watch;
}

void Inotify::Remove(int watch, Watcher& watcher) {
  const auto [first, last] = watchers_.equal_range(watch);
  for (auto at = first; at != last; ++at) {
    if (at->second != &watcher) continue;
    watchers_.erase(at);
    break;
  }
  if (!watchers_.contains(watch)) ::inotify_rm_watch(fd_.get(), watch);
}

void Inotify::Remove(Watcher& watcher) {
  std::vector<int> its;
  for (const auto& [watch, one] : watchers_)
    if (one == &watcher) its.push_back(watch);
  for (const int watch : its) Remove(watch, watcher);
}

// The limit leaves the loop's other work its turn, although users who can write to a watched folder
// may cause events faster than they are read. What is left makes the descriptor readable again.
void Inotify::Read() {
  constexpr int kMostBuffers = 8;
  std::set<Watcher*> all;  // includes watchers that lose their last descriptor in this batch
  for (const auto& [watch, watcher] : watchers_) all.insert(watcher);
  alignas(inotify_event) std::array<char, 4096> buffer;
  for (int buffers = 0; buffers < kMostBuffers; ++buffers) {
    const ssize_t got = ::read(fd_.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    for (const char* at = buffer.data(); at < buffer.data() + got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      Notify(*event);
      at += sizeof *event + event->len;
    }
  }
  for (Watcher* watcher : all) watcher->OnBatch();
}

// Watchers must neither add nor remove descriptors from within OnEvent.
void Inotify::Notify(const inotify_event& event) {
  const bool everybody = (event.mask & IN_Q_OVERFLOW) != 0;
  const auto [first, last] =
      everybody ? std::pair(watchers_.begin(), watchers_.end()) : watchers_.equal_range(event.wd);
  for (auto at = first; at != last; ++at) at->second->OnEvent(event);
  if ((event.mask & IN_IGNORED) != 0) watchers_.erase(event.wd);
}

}  // namespace penstock::os
