// Loads libcurl when the first client needs it, so that a program without a cluster does not pay
// for it. Makes no request.
#pragma once

#include <curl/curl.h>

#include "base/core/result.h"

namespace penstock::protocol::kube {

/// The functions in use of libcurl 7.85 or newer. The types are those of its header; setopt and
/// getinfo bypass its checking macros.
struct CurlLibrary {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_version_info) version_info;
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_setopt) setopt;
  decltype(&::curl_easy_getinfo) getinfo;
  decltype(&::curl_easy_strerror) strerror;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
  decltype(&::curl_multi_init) multi_init;
  decltype(&::curl_multi_cleanup) multi_cleanup;
  decltype(&::curl_multi_setopt) multi_setopt;
  decltype(&::curl_multi_add_handle) multi_add_handle;
  decltype(&::curl_multi_remove_handle) multi_remove_handle;
  decltype(&::curl_multi_socket_action) multi_socket_action;
  decltype(&::curl_multi_info_read) multi_info_read;

  /// Loads our own small build (libpenstock-curl.so, beside the programs), else the system's
  /// libcurl.so.4. Once loaded, it stays for the life of the process; after a failure, the next
  /// call tries again. Blocks: reads the library's file. Any thread.
  static base::Result<const CurlLibrary*> Load();
};

/// Releases the pages of the library's code and constants; they are read again from the page cache
/// when needed (about 30 soft faults). Acts at most once a second, and not if the system's library
/// is in use. Any thread.
void TrimCurlLibrary();

}  // namespace penstock::protocol::kube
