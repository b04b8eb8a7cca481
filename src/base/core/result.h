// Errors as values: Result<T> in the form of std::expected, with gRPC's canonical codes. Expected
// failures never throw.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace penstock::base {

/// gRPC's canonical status codes (https://grpc.github.io/grpc/core/md_doc_statuscodes.html), used
/// for all errors of this project.
enum class Code {
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

/// The code's name as gRPC spells it, e.g. "NOT_FOUND".
std::string_view Name(Code code);

/// An error for users: a code and one sentence, which says what to do if something can be done.
class [[nodiscard]] Error {
 public:
  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  /// The same error, prefixed with what was being done: "read /etc/x: permission denied".
  Error Within(std::string_view doing) const {
    return {code_, std::string(doing) + ": " + message_};
  }

  /// "NOT_FOUND: no such file".
  std::string ToString() const;

 private:
  Code code_;
  std::string message_;
};

/// Maps an errno value to a canonical code with strerror's text; the only place where errno is
/// translated.
Error ErrnoError(int error_number, std::string_view doing);

/// Either a T or the Error that prevented it.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {
  }  // NOLINT: implicit, as std::expected is
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }

  const Error& error() const { return std::get<1>(state_); }
  T value_or(T other) const { return ok() ? std::get<0>(state_) : std::move(other); }

 private:
  std::variant<T, Error> state_;
};

/// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace penstock::base

namespace penstock {

// The vocabulary of errors, which all of this project shares.
using base::Code;
using base::ErrnoError;
using base::Error;
using base::Result;
using base::Status;

}  // namespace penstock

#define PENSTOCK_CONCAT_(a, b) a##b
#define PENSTOCK_CONCAT(a, b) PENSTOCK_CONCAT_(a, b)

/// Evaluates a Result and returns its error from the enclosing function.
#define TRY(expression)                                                              \
  do {                                                                               \
    if (auto try_result = (expression); !try_result.ok()) return try_result.error(); \
  } while (false)

/// `ASSIGN(auto x, F())`: x becomes F()'s value, or the enclosing function returns F()'s error.
#define ASSIGN(declaration, expression) \
  ASSIGN_(PENSTOCK_CONCAT(assign_result_, __LINE__), declaration, expression)
#define ASSIGN_(result, declaration, expression) \
  auto result = (expression);                    \
  if (!result.ok()) return result.error();       \
  declaration = *std::move(result)
