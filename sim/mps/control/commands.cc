// Answers commands in the formats of 535.261 and 550.163, as far as these answer without a GPU, and
// in formats that users have published.
#include <algorithm>
#include <cstdio>

#include "sim/mps/control/daemon.h"

namespace mps {
namespace {

// "25.0"
std::string Percent(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f\n", value);
  return text;
}

std::string Unknown(const std::string& verb) { return "Unknown command \"" + verb + "\"\n"; }

std::string Size(std::uint64_t bytes) {
  constexpr std::uint64_t kGibi = 1u << 30;
  if (bytes >= kGibi) return std::to_string(bytes / kGibi) + "G\n";  // drops the fraction
  return std::to_string(bytes >> 20) + "M\n";
}

// "4096M", "4G"
std::optional<std::uint64_t> ParseSize(std::string text) {
  if (text.empty()) return std::nullopt;
  const char unit = text.back();
  if (unit != 'M' && unit != 'G') return std::nullopt;
  text.pop_back();
  const auto number = Number(text);
  if (!number || *number > 1u << 20) return std::nullopt;
  return *number << (unit == 'G' ? 30 : 20);
}

}  // namespace

// "0=4G,1=2048M"
void Daemon::ReadLimits(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size()),
                      equals = std::min(text.find('=', at), end);
    const auto device = Number(text.substr(at, equals - at));
    const auto bytes =
        ParseSize(text.substr(std::min(equals + 1, end), end - std::min(equals + 1, end)));
    if (device && bytes) given_[*device] = *bytes;
    at = end + 1;
  }
}

std::string Daemon::Answer(const std::string& line) {
  const std::string verb = Word(line, 0), first = Word(line, 1), second = Word(line, 2);
  if (verb.find("percentage") != std::string::npos || verb.find("mem_limit") != std::string::npos)
    return AnswerOfLimits(verb, first, second);
  if (verb == "start_server") {
    const auto uid = Number(second);
    if (first != "-uid" || !uid) return "usage: start_server -uid <user id>\n";
    if (servers_.empty()) StartServer(static_cast<uid_t>(*uid));
    return "";
  }
  if (verb == "terminate_client") {
    Server* server = Find(first);
    if (server) Send(server->fd.get(), "terminate " + second);
    return server ? "" : "Server " + first + " not found\n";
  }
  return AnswerOfServers(verb, first);
}

std::string Daemon::AnswerOfLimits(const std::string& verb, const std::string& first,
                                   const std::string& second) {
  if (verb == "get_default_active_thread_percentage") return Percent(percentage_);
  if (verb == "set_default_active_thread_percentage") {
    const auto value = Number(first.substr(0, first.find('.')));
    if (!value || *value == 0 || *value > 100) return "Invalid percentage\n";
    percentage_ = static_cast<double>(*value);
    return Percent(percentage_);
  }
  const auto device = Number(first);
  if (!device) return "Invalid device ordinal!\n";  // any number is accepted: no GPU is queried
  if (verb == "get_default_device_pinned_mem_limit") {
    const auto limit = limits_.find(*device);
    return limit == limits_.end() ? "" : Size(limit->second);
  }
  if (verb == "set_default_device_pinned_mem_limit") {
    const auto bytes = ParseSize(second);
    if (!bytes) return "Invalid memory limit\n";
    limits_[*device] = *bytes;
    return "";
  }
  return Unknown(verb);
}

Daemon::Server* Daemon::Find(const std::string& pid) {
  const auto at = std::find_if(servers_.begin(), servers_.end(), [&](const Server& server) {
    return std::to_string(server.pid) == pid;
  });
  return at == servers_.end() ? nullptr : &*at;
}

std::string Daemon::AnswerOfServers(const std::string& verb, const std::string& argument) {
  std::string text;
  if (verb == "get_server_list") {
    for (const Server& server : servers_) text += std::to_string(server.pid) + "\n";
    return text;
  }
  if (verb == "get_device_client_list") return DeviceClients();
  if (verb == "ps") return Ps();
  Server* server = Find(argument);
  const bool known =
      verb == "get_client_list" || verb == "get_server_status" || verb == "shutdown_server";
  if (!known) return Unknown(verb);
  if (!server) return "Server " + argument + " not found\n";
  if (verb == "get_server_status") return server->ready ? "ACTIVE\n" : "INITIALIZING\n";
  if (verb == "get_client_list") {
    for (const pid_t client : server->clients) text += std::to_string(client) + "\n";
    return text;
  }
  server->ending = true;
  Send(server->fd.get(), "shutdown");
  return "";
}

std::string Daemon::DeviceClients() const {
  std::string text;
  for (const Device& device : machine_.VisibleDevices()) {
    text += device.uuid + "\n";
    for (const Server& server : servers_)
      for (const pid_t client : server.clients) text += std::to_string(client) + "\n";
  }
  return text;
}

std::string Daemon::Ps() const {
  if (servers_.empty()) return "Server not found\n";
  std::string text =
      "PID       ID    SERVER    DEVICE             NAMESPACE      COMMAND  ATTRIBUTES\n";
  int id = 1;
  for (const Server& server : servers_) {
    for (const pid_t client : server.clients) {
      char line[160];
      std::snprintf(line, sizeof line, "%-9d %-5d %-9d %-18s %-14s %-8s %s\n",
                    static_cast<int>(client), id++, static_cast<int>(server.pid), "-", "-", "-",
                    "MPS");
      text += line;
    }
  }
  return text;
}

}  // namespace mps
