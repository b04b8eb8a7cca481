// Names of the codes, and the only mapping from errno.
#include "base/core/result.h"

#include <array>
#include <cerrno>
#include <cstring>

namespace penstock::base {
namespace {

Code FromErrno(int number) {
  switch (number) {
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP: return Code::kInvalidArgument;
    case ETIMEDOUT: return Code::kDeadlineExceeded;
    case ENOENT:
    case ENODEV:
    case ENXIO:
    case ESRCH:
    case ENOTDIR: return Code::kNotFound;
    case EEXIST:
    case EADDRINUSE: return Code::kAlreadyExists;
    case EPERM:
    case EACCES:
    case EROFS: return Code::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM: return Code::kResourceExhausted;
    case EBUSY:
    case EISDIR:
    case ENOTEMPTY:
    case EXDEV: return Code::kFailedPrecondition;
    case ENOSYS:
    case EOPNOTSUPP: return Code::kUnimplemented;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EAGAIN:
    case EINTR: return Code::kUnavailable;
    case ECANCELED: return Code::kCancelled;
    default: return Code::kUnknown;
  }
}

}  // namespace

std::string_view Name(Code code) {
  static constexpr std::array<std::string_view, 17> kNames = {"OK",
                                                              "CANCELLED",
                                                              "UNKNOWN",
                                                              "INVALID_ARGUMENT",
                                                              "DEADLINE_EXCEEDED",
                                                              "NOT_FOUND",
                                                              "ALREADY_EXISTS",
                                                              "PERMISSION_DENIED",
                                                              "RESOURCE_EXHAUSTED",
                                                              "FAILED_PRECONDITION",
                                                              "ABORTED",
                                                              "OUT_OF_RANGE",
                                                              "UNIMPLEMENTED",
                                                              "INTERNAL",
                                                              "UNAVAILABLE",
                                                              "DATA_LOSS",
                                                              "UNAUTHENTICATED"};
  return kNames[static_cast<std::size_t>(code)];
}

std::string Error::ToString() const { return std::string(Name(code_)) + ": " + message_; }

Error ErrnoError(int error_number, std::string_view doing) {
  std::array<char, 128> buffer{};
  return {FromErrno(error_number),
          std::string(doing) + ": " + strerror_r(error_number, buffer.data(), buffer.size())};
}

}  // namespace penstock::base
