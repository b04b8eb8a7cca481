#include "adapter/pages/node_access.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/core/strings.h"
#include "os/core/fd.h"
#include "os/core/file.h"

namespace penstock::adapter::pages {

namespace {

using base::Code;
using base::Error;

constexpr std::size_t kMostCredentials = 8u << 10, kMostAuthority = 1u << 20;

/// The content of a regular file that only its owner, root or the agent's user, can read and write.
base::Result<std::string> ReadPrivate(const std::string& file) {
  const std::string named = "page.credentialsFile: " + file;
  const os::UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return base::ErrnoError(errno, named);
  if (!S_ISREG(status.st_mode)) return Error(Code::kInvalidArgument, named + " is not a file");
  if ((status.st_mode & 077) != 0 || (status.st_uid != 0 && status.st_uid != ::geteuid()))
    return Error(Code::kPermissionDenied,
                 named + " must be readable by root alone: chown root and chmod 600 it");
  return os::ReadRegular(fd.get(), file, kMostCredentials);
}

bool IsHeaderText(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
}

}  // namespace

base::Result<NodeAccess> LoadNodeAccess(const api::PageConfig& config) {
  NodeAccess access;
  if (!config.ca_file.empty()) {
    auto authority = os::ReadFile(config.ca_file, kMostAuthority);
    if (!authority.ok())
      return Error(authority.error().code(), "page.caFile: " + authority.error().message());
    access.authority = *std::move(authority);
  }
  if (config.credentials_file.empty()) return access;
  ASSIGN(const std::string text, ReadPrivate(config.credentials_file));
  const std::string line(base::Trim(text));
  const std::size_t blank = line.find(' ');
  const std::string kind = line.substr(0, blank);
  const std::string secret(blank == std::string::npos ? "" : base::Trim(line.substr(blank)));
  if (!IsHeaderText(line) || secret.empty() ||
      (kind == "basic" ? secret.find(':') == std::string::npos : kind != "bearer"))
    return Error(Code::kInvalidArgument,
                 "page.credentialsFile: " + config.credentials_file +
                     " must be one line, \"basic USER:PASSWORD\" or \"bearer TOKEN\"");
  access.authorization =
      kind == "basic" ? "Basic " + base::EncodeBase64(secret) : "Bearer " + secret;
  return access;
}

}  // namespace penstock::adapter::pages
