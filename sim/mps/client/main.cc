// mps-client: uses a GPU of a simulated machine as a CUDA program would, through MPS if
// CUDA_MPS_PIPE_DIRECTORY leads to it. For tests and experiments.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "sim/mps/machine.h"
#include "sim/mps/wire.h"

namespace {

constexpr char kHelp[] =
    R"(mps-client [options]: a CUDA program of a simulated machine

  --device N        which GPU, counted as the program sees them (default 0)
  --allocate MiB    allocate so much; may be given several times
  --hold            stay until killed (SIGTERM, SIGINT), or until the server is gone

It says what happens, a line each: "mps server PID" or "no mps"; "limit MiB PERCENT"; "allocated MiB" (all of it so far).

Exit status: 0 success, 1 wrong usage, 2 out of memory, 3 no GPU available, 4 MPS is running and cannot be reached (CUDA error 805).
)";

enum Exit { kOk = 0, kUsage = 1, kOutOfMemory = 2, kNoDevice = 3, kNoMps = 4 };

struct Options {
  std::string device = "0";
  std::vector<unsigned long long> allocate;
  bool hold = false;
};

int Say(const std::string& text) {
  std::puts(text.c_str());
  std::fflush(stdout);
  return kOk;
}

int Refused(const std::string& text) {
  Say(text);
  return text.find("OUT_OF_MEMORY") != std::string::npos ? kOutOfMemory : kNoDevice;
}

volatile sig_atomic_t g_ended = 0;

// Waits until this program is asked to end or the server is gone (`server` -1: there is none).
// Returns false if the server is gone.
bool Hold(int server) {
  pollfd gone{server, POLLIN, 0};
  while (!g_ended) {
    if (poll(&gone, 1, -1) > 0) return false;
  }
  return true;
}

// Whether the file that the server created is in this process's /dev/shm.
bool IsShared(const std::string& name) {
  const mps::Fd fd(open(("/dev/shm/" + name).c_str(), O_RDWR | O_CLOEXEC));
  char content[128] = {};
  return fd && read(fd.get(), content, sizeof content - 1) > 0 && name == content;
}

std::vector<std::string> Words(const std::string& list) {
  std::vector<std::string> words(1);
  for (const char c : list) {
    if (c == ',')
      words.emplace_back();
    else
      words.back() += c;
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// Returns the devices as CUDA numbers them for a client: those of the server, in its order, that
// this process may open, too; of these the ones that CUDA_VISIBLE_DEVICES names, by UUID or by
// their number among them (NVIDIA's manual of MPS, "CUDA_VISIBLE_DEVICES").
std::vector<std::string> UsableGpus(const std::string& of_server) {
  const mps::Machine machine;
  std::vector<std::string> usable = Words(of_server), open, chosen;
  for (const mps::Device& device : machine.OpenDevices()) open.push_back(device.uuid);
  std::erase_if(usable, [&](const std::string& gpu) {
    return machine.there() && std::find(open.begin(), open.end(), gpu) == open.end();
  });
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!visible) return usable;
  for (const std::string& word : Words(visible)) {
    const auto number = mps::Number(word);
    if (number && *number < usable.size()) chosen.push_back(usable[*number]);
    if (std::find(usable.begin(), usable.end(), word) != usable.end()) chosen.push_back(word);
  }
  return chosen;
}

int Ask(int server, const Options& options, const std::vector<std::string>& gpus) {
  const auto number = mps::Number(options.device).value_or(gpus.size());
  if (number >= gpus.size()) return Say("error 100 CUDA_ERROR_NO_DEVICE"), kNoDevice;
  const std::string& device = gpus[number];
  mps::Send(server, "limit " + device);
  const auto limit = mps::Receive(server);
  if (!limit || mps::Word(limit->text, 0) != "limit")
    return Refused(limit ? limit->text : "server gone");
  Say("limit " + std::to_string(mps::Number(mps::Word(limit->text, 1)).value_or(0) >> 20) + " " +
      mps::Word(limit->text, 2));
  for (const auto mebibytes : options.allocate) {
    mps::Send(server, "allocate " + device + " " + std::to_string(mebibytes << 20));
    const auto answer = mps::Receive(server);
    if (!answer || mps::Word(answer->text, 0) != "allocated")
      return Refused(answer ? answer->text : "server gone");
    Say("allocated " + std::to_string(mps::Number(mps::Word(answer->text, 1)).value_or(0) >> 20));
  }
  return kOk;
}

int UseServer(mps::Fd socket, const Options& options) {
  const char* failed = "error 805 CUDA_ERROR_MPS_CONNECTION_FAILED";
  mps::Send(socket.get(), "client " + std::to_string(getpid()));
  const auto greeting = mps::Receive(socket.get());
  if (!greeting) return Say(failed), kNoMps;
  const std::string name = mps::Word(greeting->text, 1);
  if (!IsShared(name)) return Say(std::string(failed) + ": no /dev/shm/" + name), kNoMps;
  mps::Send(socket.get(), "found " + name);
  const auto welcome = mps::Receive(socket.get());
  if (!welcome) return Say(failed), kNoMps;
  Say("mps server " + mps::Word(welcome->text, 1));
  if (const int status = Ask(socket.get(), options, UsableGpus(mps::Word(welcome->text, 2)));
      status != kOk)
    return status;
  if (options.hold && !Hold(socket.get()))
    return Say("error 807 CUDA_ERROR_MPS_SERVER_NOT_READY: the server is gone"), kNoMps;
  return kOk;
}

// Uses the GPU without MPS, if the compute mode permits that.
int UseGpu(const Options& options) {
  mps::Machine machine;
  Say("no mps");
  if (!machine.there()) return Say("error 100 CUDA_ERROR_NO_DEVICE"), kNoDevice;
  const auto devices = machine.VisibleDevices();
  const auto number = mps::Number(options.device).value_or(devices.size());
  if (number >= devices.size()) return Say("error 100 CUDA_ERROR_NO_DEVICE"), kNoDevice;
  const mps::Device& device = devices[number];
  const std::uint32_t mode = device.is_mig() ? 0 : machine.gpu(device.slot).compute_mode;
  if (mode == 2 || (mode == 3 && machine.HasComputeProcess(device)))
    return Say("error 46 CUDA_ERROR_DEVICE_UNAVAILABLE"), kNoDevice;
  const auto pid = static_cast<std::uint32_t>(getpid());
  machine.PutProcess(device, pid, 'C', 0, "mps-client");
  int status = kOk;
  unsigned long long all = 0;
  for (const auto mebibytes : options.allocate) {
    if (mebibytes << 20 > machine.FreeBytes(device)) {
      status = Refused("error 2 CUDA_ERROR_OUT_OF_MEMORY");
      break;
    }
    all += mebibytes;
    machine.PutProcess(device, pid, 'C', all << 20, "mps-client");
    Say("allocated " + std::to_string(all));
  }
  if (options.hold && status == kOk) Hold(-1);
  machine.RemoveProcess(device, pid);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  struct sigaction end {};
  end.sa_handler = [](int) { g_ended = 1; };
  sigaction(SIGTERM, &end, nullptr);
  sigaction(SIGINT, &end, nullptr);
  Options options;
  for (int i = 1; i < argc; i++) {
    const std::string argument = argv[i];
    if (argument == "--help") return std::fputs(kHelp, stdout), kOk;
    const auto value = i + 1 < argc ? mps::Number(argv[i + 1]) : std::nullopt;
    if (argument == "--hold")
      options.hold = true;
    else if (argument == "--device" && value)
      options.device = argv[++i];
    else if (argument == "--allocate" && value)
      options.allocate.push_back(*value), i++;
    else
      return std::fputs("mps-client: wrong usage; see mps-client --help\n", stderr), kUsage;
  }
  mps::Fd socket = mps::Connect(mps::PipeDirectory() + "/control");
  return socket ? UseServer(std::move(socket), options) : UseGpu(options);
}
