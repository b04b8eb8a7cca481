// The control daemon: takes clients in, starts a server for their user, answers commands, holds the limits of servers to come.
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

  /// Takes the pipe directory; says on standard error why it cannot.
  bool Open();
  /// Until it is told to quit. `ready` is called once it listens.
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
  void Place();  // clients that wait go to their server
  bool StartServer(uid_t uid);
  Server* Find(const std::string& pid);
  std::string Answer(const std::string& line);
  void ReadLimits(const std::string& text);
  std::string AnswerOfServers(const std::string& verb, const std::string& argument);
  std::string AnswerOfLimits(const std::string& verb, const std::string& first, const std::string& second);
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
  // By place in CUDA_VISIBLE_DEVICES: set by command, and given by the environment, which commands do not tell.
  std::map<unsigned long long, std::uint64_t> limits_, given_;
  bool quitting_ = false, forced_ = false;
};

}  // namespace mps
