#include "app/penstock/common/programs.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "base/core/testing/must.h"

namespace penstock::app {
namespace {

using ::testing::HasSubstr;

TEST(Programs, AMissingOneIsNamedWithThePlacesLookedAt) {
  EXPECT_THAT(FindProgram("penstock-nonsense").error().message(),
              HasSubstr("penstock-nonsense was not found: it is neither at /"));
}

TEST(Programs, WhatAFailedOneSaidIsTheError) {
  EXPECT_TRUE(RunToEnd({"sh", "-c", "echo fine"}).ok());
  const auto failed = RunToEnd({"sh", "-c", "echo 'no such machine' >&2; exit 3"});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message(), "no such machine");
  EXPECT_EQ(RunToEnd({"sh", "-c", "kill -9 $$"}).error().message(), "sh exited with status 137");
}

/// Waits until a message arrives.
NotifySocket::Notice Await(const NotifySocket& socket, pid_t from) {
  pollfd source{socket.fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&source, 1, 60'000), 1);
  return socket.Read(from);
}

TEST(NotifySocket, HearsTheProcessItStartedAndNoOneElse) {
  const auto socket = Must(NotifySocket::Make());
  const std::string python =
      "import os, socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); "
      "s.connect(os.environ['NOTIFY_SOCKET'].replace('@', '\\0', "
      "1));"
      "s.send(b'STATUS=looking'); s.send(b'READY=1\\nSTATUS=8 devices\\nX=y')";
  const auto child = Must(
      os::Spawn({.arguments = {"python3", "-c", python}, .environment = socket.Environment()}));
  EXPECT_EQ(Reap(child), 0);
  const auto news = Await(socket, child.pid);
  EXPECT_TRUE(news.ready);
  EXPECT_EQ(news.status, "8 devices");

  const auto other = Must(
      os::Spawn({.arguments = {"python3", "-c", python}, .environment = socket.Environment()}));
  EXPECT_EQ(Reap(other), 0);
  EXPECT_FALSE(Await(socket, child.pid).ready);
}

TEST(NotifySocket, ReplacesTheOneInTheEnvironment) {
  ::setenv("NOTIFY_SOCKET", "/of/another", 1);
  const auto socket = NotifySocket::Make();
  ::unsetenv("NOTIFY_SOCKET");
  ASSERT_TRUE(socket.ok());
  int count = 0;
  for (const std::string& entry : socket->Environment())
    count += entry.starts_with("NOTIFY_SOCKET=") ? 1 : 0;
  EXPECT_EQ(count, 1);
  EXPECT_THAT(socket->Environment().back(), testing::StartsWith("NOTIFY_SOCKET=@"));
}

}  // namespace
}  // namespace penstock::app
