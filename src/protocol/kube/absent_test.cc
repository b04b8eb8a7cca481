// Tests calls of functions that are left out of libpenstock-net.so.
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/kube/testing/client_fixture.h"
#include "protocol/net/curl_library.h"

namespace penstock::protocol::kube {
namespace {

// Makes a request as the client never does, with every protocol that libcurl knows, and exits.
[[noreturn]] void Request(const char* url) {
  const auto library = net::CurlLibrary::Load();
  if (!library.ok()) std::exit(2);
  const net::CurlLibrary& curl = **library;
  CURL* handle = curl.easy_init();
  CURLM* multi = curl.multi_init();
  curl.setopt(handle, CURLOPT_URL, url);
  curl.multi_add_handle(multi, handle);
  for (int running = 1; running > 0;)
    curl.multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
  std::exit(0);
}

// The program must not continue with what such a function would have returned.
TEST(AbsentDeathTest, AFunctionThatIsCalledAfterAllEndsTheProgram) {
  EXPECT_EXIT(Request("ldap://127.0.0.1:1/"), ::testing::KilledBySignal(SIGABRT), "");
  EXPECT_EXIT(Request("rtmp://127.0.0.1:1/x"), ::testing::KilledBySignal(SIGABRT), "");
  EXPECT_EXIT(Request("http://127.0.0.1:1/"), ::testing::ExitedWithCode(0), "")
      << "protocols that are included work";
}

TEST(Absent, NamesOfHostsThatAreNotAsciiAreRefused) {
  ClusterAccess server = AccessTo("https://b\u00fccher.invalid:6443"),
                escaped = AccessTo("https://b%C3%BCcher.invalid:6443");
  ClusterAccess name = AccessTo("https://127.0.0.1:1"), proxy = AccessTo("https://127.0.0.1:1");
  name.tls_server_name = "b\u00fccher.invalid";
  proxy.proxy = "http://b\u00fccher.invalid:3128";
  for (const ClusterAccess& access : {server, escaped, name, proxy}) {
    ClientUnderTest client(access);
    EXPECT_THAT(
        client.Do(GetOf("/x")).error().ToString(),
        ::testing::HasSubstr("INVALID_ARGUMENT: GET /x: this is not the address of an API server"));
  }
}

}  // namespace
}  // namespace penstock::protocol::kube
