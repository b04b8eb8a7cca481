// Functions that are left out of libpenstock-curl.so, called after all.
#include <csignal>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "edge/kube/client_fixture.h"
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

TEST(Absent, NamesOfHostsThatAreNotAsciiAreRefused) {
  Access server = AccessTo("https://b\u00fccher.invalid:6443"), escaped = AccessTo("https://b%C3%BCcher.invalid:6443");
  Access name = AccessTo("https://127.0.0.1:1"), proxy = AccessTo("https://127.0.0.1:1");
  name.tls_server_name = "b\u00fccher.invalid";
  proxy.proxy = "http://b\u00fccher.invalid:3128";
  for (const Access& access : {server, escaped, name, proxy}) {
    ClientUnderTest client(access);
    const auto answer = client.Do(GetOf("/x"));
    ASSERT_FALSE(answer.ok());
    EXPECT_THAT(answer.error().ToString(), testing::HasSubstr("INVALID_ARGUMENT: GET /x: this is no address of an API server"));
  }
}

}  // namespace
}  // namespace penstock::edge::kube
