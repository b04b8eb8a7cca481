// How the simulated MPS programs talk: messages over unix sockets in the pipe directory. NVIDIA's own wire is not known, nor imitated.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace mps {

/// A descriptor that closes itself.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.Release()) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();
  int get() const { return fd_; }
  int Release();
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// A socket to listen on, replacing what lies at the path; none, with errno, where the path is too long for a socket or cannot be made.
Fd Listen(const std::string& path, mode_t mode);
Fd Connect(const std::string& path);

struct Message {
  std::string text;
  Fd passed;  // a descriptor that came with it
};

/// False where nobody is there any more.
bool Send(int socket, std::string_view text, int passed = -1);
/// Nothing at the end of the connection.
std::optional<Message> Receive(int socket);

/// The process at the other end, as this one sees it; 0 where it cannot.
pid_t PeerPid(int socket);
uid_t PeerUid(int socket);

/// CUDA_MPS_PIPE_DIRECTORY, CUDA_MPS_LOG_DIRECTORY, or what the real ones take.
std::string PipeDirectory();
std::string LogDirectory();

/// Words between blanks.
std::optional<unsigned long long> Number(std::string_view text);
std::string Word(std::string_view text, int which);

/// A line in LogDirectory()/`file`, in the form of the real ones: "[time who pid] text".
void Log(const char* file, const char* who, const std::string& text);

}  // namespace mps
