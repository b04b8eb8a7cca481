#include "app/devices/driver_root.h"

#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "app/devices/paths.h"
#include "base/log.h"
#include "os/core/root.h"
#include "os/kernel_modules.h"
#include "os/trusted_path.h"

namespace penstock::app {
namespace {

/// A pod's start changes some mounts within this time.
constexpr base::Duration kGather = std::chrono::milliseconds(250);
constexpr base::Duration kAway = std::chrono::seconds(3);

/// Inode numbers are used again, and a root may be mounted twice: with the mount and the time of
/// creation it is another one.
std::string IdentityOf(const os::UniqueFd& file) {
#ifdef STATX_MNT_ID
  constexpr unsigned kMount = STATX_MNT_ID;
#else
  constexpr unsigned kMount = 0;
#endif
  struct statx info {};
  if (::statx(file.get(), "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME | kMount, &info) != 0)
    return "";
  std::string identity = std::to_string(info.stx_dev_major) + ":" +
                         std::to_string(info.stx_dev_minor) + ":" + std::to_string(info.stx_ino) +
                         ":" + std::to_string(info.stx_btime.tv_sec) + "." +
                         std::to_string(info.stx_btime.tv_nsec);
#ifdef STATX_MNT_ID
  identity += ":" + std::to_string(info.stx_mnt_id);
#endif
  return identity;
}

bool IsRefused(const base::Error& error) { return error.code() == Code::kPermissionDenied; }

std::string NotUsed(const std::string& place, const base::Error& error) {
  return "what is in " + place + " is not used as the driver's root: " + error.message();
}

/// Device files are where the host's driver has them: no other folder is configured for them.
bool DevFollows(const api::PathsConfig& paths) {
  const std::string& host_root =
      paths.host_driver_root.empty() ? paths.driver_root : paths.host_driver_root;
  if (!paths.host_dev_root.empty()) return paths.host_dev_root == host_root;
  return paths.dev_root.empty() || paths.dev_root == paths.driver_root;
}

/// A driver container has a /dev of its own, into which the driver's programs put device files. It
/// counts unless only the host has them.
bool HasOwnDev(const api::PathsConfig& paths, const std::string& root, const std::string& control) {
  if (!DevFollows(paths) || !os::OpenTrusted(root, "/dev").ok()) return false;
  const auto opened = os::Root::Open(root);
  return opened.ok() && (opened->Exists(control) || !os::Exists(OpenedPath(paths, control)));
}

}  // namespace

bool SameRoot(const DriverRoot& a, const DriverRoot& b) {
  return a.container == b.container && a.place == b.place && a.own_dev == b.own_dev &&
         a.instance == b.instance;
}

DriverRootSearch::DriverRootSearch(const api::NodeConfig& config, std::string_view vendor)
    : paths(config.paths), fixed_library(!api::OfVendor(config.paths.libraries, vendor).empty()) {}

DriverRoot FindDriverRoot(const DriverRootSearch& search, const device::Dialect& dialect) {
  DriverRoot found;
  const std::string& place = search.paths.driver_container_root;
  const device::KernelDriver* driver = dialect.kernel_driver();
  if (place.empty() || driver == nullptr || search.fixed_library) return found;
  const auto folder = os::OpenTrusted(search.paths.driver_root, place);
  if (!folder.ok()) {
    if (IsRefused(folder.error())) found.problem = NotUsed(place, folder.error());
    return found;
  }
  if (folder->path == "/") return found;  // the configured root itself
  found.seen = IdentityOf(folder->fd);
  const std::string root = BelowRoot(search.paths.driver_root, folder->path);
  for (const std::string& name : driver->libraries) {
    const auto library = os::OpenTrusted(root, name);
    if (library.ok() && S_ISREG(library->status.st_mode)) {
      found.container = true;
      found.place = folder->path;
      found.instance = found.seen + " " + IdentityOf(library->fd);
      found.own_dev = HasOwnDev(search.paths, root, driver->control);
      found.problem.clear();
      return found;
    }
    if (!library.ok() && IsRefused(library.error()))
      found.problem = NotUsed(place, library.error());
  }
  return found;
}

api::PathsConfig PathsIn(const api::PathsConfig& paths, const DriverRoot& root) {
  if (!root.container) return paths;
  api::PathsConfig in = paths;
  const std::string& host_root =
      paths.host_driver_root.empty() ? paths.driver_root : paths.host_driver_root;
  in.driver_root = BelowRoot(paths.driver_root, root.place);
  in.host_driver_root = BelowRoot(host_root, root.place);
  if (root.own_dev) {
    in.dev_root = in.driver_root;
    in.host_dev_root = in.host_driver_root;
  } else {
    in.dev_root = DevRootOf(paths);
    in.host_dev_root = HostDevRootOf(paths);
  }
  return in;
}

api::NodeConfig WithDriverRoot(api::NodeConfig config, const device::Dialect& dialect) {
  const DriverRoot root = FindDriverRoot({config, dialect.vendor()}, dialect);
  config.paths = PathsIn(config.paths, root);
  return config;
}

std::shared_ptr<const node::inventory::DriverLocation> PlaceIn(const api::PathsConfig& paths,
                                                               const DriverRoot& root,
                                                               const std::string& module) {
  const api::PathsConfig in = PathsIn(paths, root);
  return std::make_shared<const node::inventory::DriverLocation>(node::inventory::DriverLocation{
      .container = root.container,
      .driver_root = in.driver_root,
      .host_driver_root = in.host_driver_root.empty() ? in.driver_root : in.host_driver_root,
      .dev_root = DevRootOf(in),
      .host_dev_root = HostDevRootOf(in),
      .instance = root.instance + " " + module,
      .unused = root.problem});
}

DriverRootWatch::DriverRootWatch(os::Loop& control, base::Executor& io, DriverRootSearch search,
                                 const device::Dialect& dialect,
                                 std::function<void(const DriverRoot& before)> changed)
    : control_(control),
      io_(io),
      search_(std::move(search)),
      dialect_(dialect),
      changed_(std::move(changed)) {
  if (!Follows()) return;
  // Before the first look, so that no change is missed.
  auto mounts = os::MountWatch::Start(
      control_, [this] { Look(); }, kGather);
  if (mounts.ok()) {
    mounts_ = *std::move(mounts);
  } else {
    base::Log(base::kWarn, "cannot watch mounts; a driver container is noticed by its files only",
              {{"why", mounts.error().message()}});
  }
  now_ = FindDriverRoot(search_, dialect_);
  LogProblem("");
}

DriverRootWatch::~DriverRootWatch() { control_.Cancel(back_by_); }

bool DriverRootWatch::Follows() const {
  return !search_.paths.driver_container_root.empty() && !search_.fixed_library &&
         dialect_.kernel_driver() != nullptr;
}

void DriverRootWatch::Look() {
  if (!Follows()) return;
  if (std::exchange(looking_, true)) {
    again_ = true;
    return;
  }
  const auto take =
      lifetime_.Guard([this](const DriverRoot& root, bool loaded) { Looked(root, loaded); });
  io_.Post([take, &control = control_, search = search_, &dialect = dialect_] {
    const bool loaded =
        os::FindKernelModule(search.paths.sysfs_root, dialect.kernel_driver()->module).has_value();
    control.Post([take, root = FindDriverRoot(search, dialect), loaded] { take(root, loaded); });
  });
}

void DriverRootWatch::Looked(DriverRoot root, bool loaded) {
  looking_ = false;
  if (!MayComeBack(root, loaded)) {
    away_since_.reset();
    control_.Cancel(std::exchange(back_by_, 0));
    const DriverRoot before = std::exchange(now_, std::move(root));
    if (before != now_) {
      LogProblem(before.problem);
      changed_(before);
    }
  }
  if (std::exchange(again_, false)) Look();
}

bool DriverRootWatch::MayComeBack(const DriverRoot& root, bool loaded) {
  if (!now_.container || root.container || !root.problem.empty() || !loaded) return false;
  const base::TimePoint now = control_.clock().Now();
  if (!away_since_) away_since_ = now;
  const base::Duration left = *away_since_ + kAway - now;
  if (left <= base::Duration::zero()) return false;
  control_.Cancel(back_by_);
  back_by_ = control_.PostAfter(left, [this] {
    back_by_ = 0;
    Look();
  });
  return true;
}

void DriverRootWatch::LogProblem(const std::string& before) const {
  if (!now_.problem.empty() && now_.problem != before)
    base::Log(base::kWarn, "driver container ignored",
              {{"vendor", std::string(dialect_.vendor())}, {"why", now_.problem}});
}

}  // namespace penstock::app
