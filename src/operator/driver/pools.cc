#include "operator/driver/pools.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "api/compat/nvidia/driver_names.h"
#include "base/core/hash.h"
#include "base/core/strings.h"

namespace penstock::cluster {
namespace {

using api::DriverSpec;

/// How the names in a Node's status begin, and the ID of os-release(5) that they mean.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kSystems = {
    {{"Ubuntu ", "ubuntu"},
     {"Debian GNU/Linux ", "debian"},
     {"Red Hat Enterprise Linux CoreOS ", "rhcos"},
     {"Red Hat Enterprise Linux ", "rhel"},
     {"Rocky Linux ", "rocky"},
     {"CentOS Stream ", "centos"},
     {"CentOS Linux ", "centos"},
     {"Oracle Linux Server ", "ol"},
     {"Amazon Linux ", "amzn"},
     {"SUSE Linux Enterprise Server ", "sles"},
     {"SUSE Linux Micro ", "sl-micro"},
     {"Flatcar Container Linux by Kinvolk ", "flatcar"}}};

std::string LabelIn(const DriverNode& node, std::string_view key) {
  const auto found = node.labels.find(std::string(key));
  return found == node.labels.end() ? "" : found->second;
}

/// "22.04" of "22.04.3 LTS" for Ubuntu, whose VERSION_ID has two parts; "15.5" of "15 SP5".
std::string VersionIn(std::string_view id, std::string_view text) {
  const std::size_t end = text.find_first_not_of("0123456789.");
  std::string version(text.substr(0, end));
  if (id == "ubuntu" && std::ranges::count(version, '.') > 1)
    version = version.substr(0, version.rfind('.'));
  if (end != std::string_view::npos && text.substr(end).starts_with(" SP"))
    version += "." + std::string(text.substr(end + 3, text.find(' ', end + 3) - end - 3));
  return version;
}

void ReadSystem(const DriverNode& node, DriverPool& pool) {
  pool.os_id = LabelIn(node, api::compat::kOsIdLabel);
  pool.os_version = LabelIn(node, api::compat::kOsVersionLabel);
  if (!pool.os_id.empty() && !pool.os_version.empty()) return;
  for (const auto& [prefix, id] : kSystems) {
    if (!node.os_image.starts_with(prefix)) continue;
    pool.os_id = id;
    pool.os_version = VersionIn(id, std::string_view(node.os_image).substr(prefix.size()));
    return;
  }
}

/// Images of some systems are for all minor versions of a major one.
std::string OsTag(const std::string& id, const std::string& version) {
  const std::string major = version.substr(0, version.find('.'));
  const bool by_major = id == "rocky" || (id == "rhel" && base::ParseInt(major).value_or(0) >= 10);
  return id + (by_major ? major : version);
}

/// Images have several architectures, and names of objects no capital letters and no '_'.
std::string PlainKernel(std::string kernel) {
  for (const std::string_view arch : {"x86_64", "aarch64"})
    if (const std::size_t at = kernel.find(arch); at != std::string::npos)
      kernel.erase(at, arch.size());
  std::ranges::replace(kernel, '_', '.');
  if (kernel.ends_with('.')) kernel.pop_back();
  return base::ToLower(kernel);
}

bool IsPlain(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == '+';
  });
}

/// Labels of nodes are written by others, and become parts of images' names.
std::string WhyNoPool(const DriverPool& pool, bool precompiled) {
  if (!IsPlain(pool.os_id) || !IsPlain(pool.os_version))
    return "its operating system is not known: neither the labels " +
           std::string(api::compat::kOsIdLabel) + " and .VERSION_ID nor the Node's status name it";
  if (precompiled && !IsPlain(pool.kernel))
    return "its kernel is not known: neither the label " + std::string(api::compat::kKernelLabel) +
           " nor the Node's status names it";
  return "";
}

/// Ten characters of which names may consist.
std::string ShortHash(std::string_view text) {
  constexpr std::string_view kDigits = "bcdfghjklmnpqrstvwxz2456789";
  std::uint64_t hash = base::Hash(text);
  std::string digits;
  for (int i = 0; i < 10; ++i, hash /= kDigits.size()) digits += kDigits[hash % kDigits.size()];
  return digits;
}

}  // namespace

std::string DriverPool::Name() const {
  return kernel.empty() ? os_tag : PlainKernel(kernel) + "-" + os_tag;
}

DriverPools PoolsOf(const DriverSpec& driver, const std::vector<DriverNode>& nodes) {
  return PoolsOf(driver, PointersTo(nodes));
}

DriverPools PoolsOf(const DriverSpec& driver, std::span<const DriverNode* const> nodes) {
  DriverPools pools;
  for (const DriverNode* one : nodes) {
    const DriverNode& node = *one;
    DriverPool pool;
    ReadSystem(node, pool);
    if (driver.precompiled) {
      pool.kernel = LabelIn(node, api::compat::kKernelLabel);
      if (pool.kernel.empty()) pool.kernel = node.kernel;
    }
    if (std::string why = WhyNoPool(pool, driver.precompiled); !why.empty()) {
      pools.without.push_back({node.name, std::move(why)});
      continue;
    }
    pool.os_tag = OsTag(pool.os_id, pool.os_version);
    pools.nodes[pool].push_back(node.name);
  }
  for (auto& [pool, names] : pools.nodes) std::ranges::sort(names);
  return pools;
}

std::optional<DriverPool> PoolAfterBoot(const DriverPool& pool, const std::string& kernel) {
  constexpr std::size_t kLongest = 64;  // as in utsname
  const bool fits = IsPlain(kernel) && kernel.size() <= kLongest && !PlainKernel(kernel).empty();
  if (pool.kernel.empty() || !fits || PlainKernel(kernel) == PlainKernel(pool.kernel))
    return std::nullopt;
  DriverPool after = pool;
  after.kernel = kernel;
  return after;
}

std::string DaemonSetName(const DriverSpec& driver, const DriverPool& pool) {
  constexpr std::size_t kMost = 63, kHashed = 11;
  const std::string name =
      base::ToLower((driver.name.empty() ? "nvidia-driver-daemonset"
                                         : "nvidia-" + driver.type + "-driver-" + driver.name) +
                    "-" + pool.Name());
  if (name.size() <= kMost) return name;
  std::string start = name.substr(0, kMost - kHashed);
  while (!std::isalnum(static_cast<unsigned char>(start.back()))) start.pop_back();
  return start + "-" + ShortHash(name);
}

Result<std::string> DriverImage(const DriverSpec& driver, const DriverPool& pool) {
  const api::ImageParts& image = driver.image;
  if (image.image.empty())
    return Error(Code::kInvalidArgument,
                 "the driver names no image: set image, and repository and "
                 "version unless it contains them");
  if (image.repository.empty() && image.version.empty()) return image.image;
  const std::string name =
      image.repository.empty() ? image.image : image.repository + "/" + image.image;
  if (image.version.empty())
    return Error(Code::kInvalidArgument, "the driver's image " + name + " has no version");
  if (image.version.starts_with("sha256:")) return name + "@" + image.version;
  return name + ":" + image.version + (pool.kernel.empty() ? "" : "-" + PlainKernel(pool.kernel)) +
         "-" + pool.os_tag;
}

}  // namespace penstock::cluster
