// The MPS control daemon: accepts clients, starts a server for their user, answers commands, and
// keeps the limits of future servers.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "sim/mps/machine.h"
#include "sim/mps/wire.h"

namespace mps {

class Daemon {
 public:
  Daemon();

  /// Locks the pipe directory; prints to standard error why it cannot.
  bool Open();
  /// Runs until a command ends it. Calls `ready` once it listens.
  int Run(void (*ready)());

 private:
  struct Server {
    pid_t pid = 0;
    uid_t uid = 0;
    Fd fd;
    bool ready = false, ending = false;
    std::vector<pid_t> clients;
  };
  struct Client {
    Fd fd;
    pid_t pid = 0;
    uid_t uid = 0;
  };

  void Wait();
  bool Hangs();
  void OnNewcomer(Fd fd);
  void OnServer(Server& server);
  void OnCommand(Fd& connection);
  void Place();  // connects waiting clients to their server
  bool StartServer(uid_t uid);
  Server* Find(const std::string& pid);
  std::string Answer(const std::string& line);
  void ReadLimits(const std::string& text);
  std::string AnswerOfServers(const std::string& verb, const std::string& argument);
  std::string AnswerOfLimits(const std::string& verb, const std::string& first,
                             const std::string& second);
  std::string DeviceClients() const;
  std::string Ps() const;
  bool MayEnd() const;

  Machine machine_;
  std::string pipe_ = PipeDirectory();
  Fd lock_, control_, privileged_, changes_;
  std::vector<Fd> newcomers_, connections_;
  std::list<Server> servers_;
  std::list<Client> waiting_;
  double percentage_ = 100;
  // By index in CUDA_VISIBLE_DEVICES: set by command, and given by the environment, which commands
  // do not report.
  std::map<unsigned long long, std::uint64_t> limits_, given_;
  bool quitting_ = false, forced_ = false;
};

}  // namespace mps
