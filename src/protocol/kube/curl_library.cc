#include "protocol/kube/curl_library.h"

#include <chrono>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "os/library.h"
#include "os/trim.h"

namespace penstock::protocol::kube {
namespace {

using base::Code;
using base::Error;

constexpr char kOwn[] = "libpenstock-curl.so";

base::Result<CurlLibrary> Resolve(std::span<const os::Library> libraries) {
  CurlLibrary curl{};
  os::Symbols symbols(libraries);
  symbols.Take(curl.global_init, "curl_global_init");
  symbols.Take(curl.version_info, "curl_version_info");
  symbols.Take(curl.easy_init, "curl_easy_init");
  symbols.Take(curl.easy_cleanup, "curl_easy_cleanup");
  symbols.Take(curl.setopt, "curl_easy_setopt");
  symbols.Take(curl.getinfo, "curl_easy_getinfo");
  symbols.Take(curl.strerror, "curl_easy_strerror");
  symbols.Take(curl.slist_append, "curl_slist_append");
  symbols.Take(curl.slist_free_all, "curl_slist_free_all");
  symbols.Take(curl.multi_init, "curl_multi_init");
  symbols.Take(curl.multi_cleanup, "curl_multi_cleanup");
  symbols.Take(curl.multi_setopt, "curl_multi_setopt");
  symbols.Take(curl.multi_add_handle, "curl_multi_add_handle");
  symbols.Take(curl.multi_remove_handle, "curl_multi_remove_handle");
  symbols.Take(curl.multi_socket_action, "curl_multi_socket_action");
  symbols.Take(curl.multi_info_read, "curl_multi_info_read");
  if (!symbols.missing().empty())
    return Error(Code::kUnimplemented, "libcurl lacks " + symbols.missing());
  if (const auto* info = curl.version_info(CURLVERSION_NOW); info->version_num < 0x075500) {
    return Error(Code::kUnimplemented,
                 std::string("libcurl ") + info->version + " is too old: 7.85 or newer is needed");
  }
  // The signal handler that libcurl would otherwise set belongs to the program.
  if (const CURLcode code = curl.global_init(CURL_GLOBAL_SSL); code != CURLE_OK) {
    return Error(Code::kUnavailable,
                 std::string("libcurl cannot be initialized: ") + curl.strerror(code));
  }
  return curl;
}

// libcurl's state belongs to the process: initialized once and never cleaned up, since OpenSSL
// cannot be initialized again.
struct Loaded {
  std::vector<os::Library> libraries;
  CurlLibrary curl;
  std::chrono::steady_clock::time_point trimmed{};
};

std::mutex& LibraryMutex() {
  static std::mutex mutex;
  return mutex;
}

std::optional<Loaded>& TheOne() {
  // Never freed: other threads may still use it when the program ends.
  static std::optional<Loaded>* one = new std::optional<Loaded>;
  return *one;
}

}  // namespace

base::Result<const CurlLibrary*> CurlLibrary::Load() {
  std::lock_guard lock(LibraryMutex());
  std::optional<Loaded>& one = TheOne();
  if (!one) {
    auto libraries = os::LoadBundled(kOwn, "libcurl", {"libcurl.so.4"});
    if (!libraries.ok())
      return Error(Code::kUnimplemented,
                   "cannot connect to any API server: " + libraries.error().message());
    ASSIGN(CurlLibrary curl, Resolve(*libraries));
    one.emplace(Loaded{*std::move(libraries), curl, {}});
  }
  return &one->curl;
}

void TrimCurlLibrary() {
  std::lock_guard lock(LibraryMutex());
  const auto now = std::chrono::steady_clock::now();
  std::optional<Loaded>& one = TheOne();
  if (!one || now - one->trimmed < std::chrono::seconds(1)) return;
  one->trimmed = now;
  os::TrimLoaded([](std::string_view path) { return path.find(kOwn) != std::string_view::npos; });
}

}  // namespace penstock::protocol::kube
