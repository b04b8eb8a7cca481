// libcurl, loaded when the first client wants it: a program without a cluster pays nothing for it. Makes no request.
#pragma once

#include <curl/curl.h>

#include "base/core/result.h"

namespace penstock::edge::kube {

/// The functions we use of libcurl 7.85 or newer. The types are the header's own; setopt and getinfo go past its checking macros.
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

  /// Any thread. Our own small build of it (libpenstock-curl.so, beside the programs), else the system's libcurl.so.4. Once loaded it stays
  /// for the process; a failure is tried again at the next call. Blocks: reads the library's file.
  static base::Result<const CurlLibrary*> Load();
};

/// Gives back the pages of the library's code and constants: they come again from the page cache where they are wanted (about 30 soft
/// faults). At most once a second. Nothing where the system's library is in use. Any thread.
void TrimCurlLibrary();

}  // namespace penstock::edge::kube
