// Measures a scrape as Prometheus makes it: a page of 2,240 series over HTTP on the loopback, from
// the request's first byte to the answer's last, on a persistent connection; and how long a
// decision waits while many clients scrape. Compares it with sending the same bytes without HTTP.
#include <array>
#include <atomic>
#include <csignal>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <sys/socket.h>

#include "adapter/pages/pages.h"
#include "base/core/strings.h"
#include "bench/calls.h"
#include "os/core/fd.h"
#include "protocol/http/gzip.h"

namespace {

using namespace penstock;
using bench::Calls;
using Text = std::shared_ptr<const std::string>;

constexpr int kSeries = 2240;

/// Returns a page whose lines are as long as those with dcgm-exporter's names and a pod's labels:
/// 310 bytes.
Text MakePage(int turn) {
  std::string text =
      "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n";
  for (int i = 0; i < kSeries; ++i) {
    const std::string gpu = std::to_string(i / 35);
    text += "DCGM_FI_DEV_QUANTITY_" + std::to_string(i % 35) + "{gpu=\"" + gpu +
            "\",UUID=\"GPU-00000000-0000-0000-0000-0000000000" + std::to_string(10 + i / 35) +
            "\",pci_bus_id=\"00000000:8D:00.0\",device=\"nvidia" + gpu +
            "\",modelName=\"NVIDIA "
            "A100-SXM4-40GB\",hostname=\"node-17.cluster.example\",DCGM_FI_DRIVER_VERSION=\"550.54."
            "15\","
            "container=\"main\",namespace=\"team-a\",pod=\"train-" +
            std::to_string(i / 35 * 7919) + "\"} " +
            std::to_string((i * 7919 + turn * 31) % 100000) + "\n";
  }
  return std::make_shared<const std::string>(std::move(text));
}

os::UniqueFd ConnectTo(const std::string& where) {
  os::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port =
      htons(static_cast<std::uint16_t>(*base::ParseUint(where.substr(where.rfind(':') + 1))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::abort();
  return fd;
}

/// Sends a request and reads one answer with its head. Returns its length.
std::size_t Scrape(int fd, const std::string& request) {
  if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size()))
    std::abort();
  static thread_local std::vector<char> buffer(256u << 10);
  std::string head;
  std::size_t got = 0, wanted = 0;
  while (wanted == 0 || got < wanted) {
    const ssize_t count = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (count <= 0) std::abort();
    got += static_cast<std::size_t>(count);
    if (wanted != 0) continue;
    head.append(buffer.data(), static_cast<std::size_t>(count));
    const std::size_t end = head.find("\r\n\r\n");
    if (end == std::string::npos) continue;
    const std::size_t length = head.find("Content-Length: ") + 16;
    wanted = end + 4 + *base::ParseUint(head.substr(length, head.find('\r', length) - length));
  }
  return got;
}

/// A page server with its own control loop.
class Served {
 public:
  Served()
      : pages_(control_, io_,
               {.metrics = [this](auto, auto) { return node::metrics::RenderedPage{page_}; },
                .report = [] { return api::Report(); },
                .not_ready = [] { return std::string(); }}) {
    ::signal(SIGPIPE, SIG_IGN);
    if (!pages_.Start({.listen = "127.0.0.1:0"}).ok()) std::abort();
    control_.Start();
    io_.Start();
  }
  ~Served() {
    control_.Stop();
    io_.Stop();
  }

  /// Measures how long a decision made now waits for the control loop.
  void Decide() {
    std::promise<void> done;
    control_.Post([&] { done.set_value(); });
    done.get_future().wait();
  }
  void Replace(Text page) {
    std::promise<void> done;
    control_.Post([&] {
      page_ = std::move(page);
      done.set_value();
    });
    done.get_future().wait();
  }
  const std::string& where() const { return pages_.where(); }

 private:
  os::Loop control_{"control"};
  os::Loop io_{"io"};
  Text page_ = MakePage(0);
  adapter::pages::Pages pages_;
};

std::string Request(const std::string& fields) {
  return "GET /metrics HTTP/1.1\r\nHost: bench\r\n" + fields + "\r\n";
}

void ScrapeOverHttp(benchmark::State& state, const std::string& fields, bool fresh) {
  Served served;
  const auto fd = ConnectTo(served.where());
  const std::string request = Request(fields);
  std::size_t bytes = Scrape(fd.get(), request);
  Calls calls(state);
  int turn = 0;
  for (auto _ : state) {
    if (fresh) {
      state.PauseTiming();
      served.Replace(MakePage(++turn));
      state.ResumeTiming();
    }
    calls.Time([&] { bytes = Scrape(fd.get(), request); });
  }
  state.SetLabel(std::to_string(bytes / 1024) + " KiB");
}
BENCHMARK_CAPTURE(ScrapeOverHttp, plain, "", false)->UseRealTime();
BENCHMARK_CAPTURE(ScrapeOverHttp, gzip, "Accept-Encoding: gzip\r\n", false)->UseRealTime();
BENCHMARK_CAPTURE(ScrapeOverHttp, gzip_of_a_new_page, "Accept-Encoding: gzip\r\n", true)
    ->UseRealTime();

/// Measures the machine's cost for the bytes alone: a thread that answers each byte with the page.
void BytesOverLoopback(benchmark::State& state) {
  const Text page = MakePage(0);
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) std::abort();
  os::UniqueFd near(ends[0]), far(ends[1]);
  std::thread answering([&] {
    for (char byte = 0; ::recv(far.get(), &byte, 1, 0) == 1;) {
      for (std::size_t sent = 0; sent < page->size();) {
        const ssize_t count =
            ::send(far.get(), page->data() + sent, page->size() - sent, MSG_NOSIGNAL);
        if (count <= 0) return;
        sent += static_cast<std::size_t>(count);
      }
    }
  });
  std::vector<char> buffer(256u << 10);
  {
    Calls calls(state);
    for (auto _ : state) {
      calls.Time([&] {
        if (::send(near.get(), "x", 1, MSG_NOSIGNAL) != 1) std::abort();
        for (std::size_t got = 0; got < page->size();) {
          const ssize_t count = ::recv(near.get(), buffer.data(), buffer.size(), 0);
          if (count <= 0) std::abort();
          got += static_cast<std::size_t>(count);
        }
      });
    }
  }
  ::shutdown(near.get(), SHUT_RDWR);
  answering.join();
}
BENCHMARK(BytesOverLoopback)->UseRealTime();

/// While eight clients scrape as fast as they can, plain and compressed.
void DecisionDuringScrapes(benchmark::State& state) {
  Served served;
  std::atomic<bool> ended = false;
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&, i] {
      const auto fd = ConnectTo(served.where());
      const std::string request = Request(i % 2 == 0 ? "" : "Accept-Encoding: gzip\r\n");
      while (!ended) (void)Scrape(fd.get(), request);
    });
  }
  {
    Calls calls(state);
    for (auto _ : state) calls.Time([&] { served.Decide(); });
  }
  ended = true;
  for (std::thread& client : clients) client.join();
}
BENCHMARK(DecisionDuringScrapes)->UseRealTime();

void GzipOfAPage(benchmark::State& state) {
  const Text page = MakePage(0);
  std::size_t bytes = 0;
  for (auto _ : state) bytes = protocol::http::Gzip(*page)->size();
  state.SetLabel(std::to_string(page->size() / 1024) + " to " + std::to_string(bytes / 1024) +
                 " KiB");
}
BENCHMARK(GzipOfAPage);

}  // namespace
