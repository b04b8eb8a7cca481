// Functions that are left out of libpenstock-curl.so, called after all.
#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>

#include "edge/kube/curl_library.h"

namespace penstock::edge::kube {
namespace {

// Begins a request as the client never does, with every protocol that libcurl knows, and ends with the program.
[[noreturn]] void Request(const char* url) {
  const auto library = CurlLibrary::Load();
  if (!library.ok()) std::exit(2);
  const CurlLibrary& curl = **library;
  CURL* handle = curl.easy_init();
  CURLM* multi = curl.multi_init();
  curl.setopt(handle, CURLOPT_URL, url);
  curl.multi_add_handle(multi, handle);
  for (int running = 1; running > 0;) curl.multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
  std::exit(0);
}

// It must not go on with what such a function would have returned.
TEST(AbsentDeathTest, AFunctionThatIsCalledAfterAllEndsTheProgram) {
  EXPECT_EXIT(Request("ldap://127.0.0.1:1/"), testing::KilledBySignal(SIGABRT), "");
  EXPECT_EXIT(Request("rtmp://127.0.0.1:1/x"), testing::KilledBySignal(SIGABRT), "");
  EXPECT_EXIT(Request("http://127.0.0.1:1/"), testing::ExitedWithCode(0), "") << "what is not left out works";
}

}  // namespace
}  // namespace penstock::edge::kube
