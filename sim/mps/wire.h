// The protocol of the simulated MPS programs: messages over Unix sockets in the pipe directory.
// NVIDIA's own protocol is unknown and is not imitated.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace mps {

/// A file descriptor that closes itself.
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

/// Returns a listening socket, replacing any file at the path; none, with errno, if the path is too
/// long for a socket or cannot be created.
Fd Listen(const std::string& path, mode_t mode);
Fd Connect(const std::string& path);

struct Message {
  std::string text;
  Fd passed;  // a descriptor that was passed with it
};

/// Returns false if the peer is gone.
bool Send(int socket, std::string_view text, int passed = -1);
/// Returns nothing at the end of the connection.
std::optional<Message> Receive(int socket);

/// Return the process and the user of the peer, as this process sees them; 0 if unknown.
pid_t PeerPid(int socket);
uid_t PeerUid(int socket);

/// Return CUDA_MPS_PIPE_DIRECTORY, CUDA_MPS_LOG_DIRECTORY, or the defaults of the real programs.
std::string PipeDirectory();
std::string LogDirectory();

/// Parse a number, and return one of the words separated by blanks.
std::optional<unsigned long long> Number(std::string_view text);
std::string Word(std::string_view text, int which);

/// Appends a line to LogDirectory()/`file`, in the format of the real programs: "[time who pid]
/// text".
void Log(const char* file, const char* who, const std::string& text);

}  // namespace mps
