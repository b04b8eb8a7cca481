// Polls a kubelet's pod-resources for its allocatable devices, and prints each change with the
// monotonic clock. The kubelet serves a hundred such requests a second for all clients together, so
// this program polls every 15 ms, which is also its error.
//
//   bench-allocatable SOCKET RESOURCE
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <thread>

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include "podresources.grpc.pb.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "bench-allocatable SOCKET RESOURCE; bench/run starts it\n";
    return 2;
  }
  using Clock = std::chrono::steady_clock;
  const auto stub = v1::PodResourcesLister::NewStub(
      grpc::CreateChannel(std::string("unix://") + argv[1], grpc::InsecureChannelCredentials()));
  for (int last = -1; std::cout.good();) {
    grpc::ClientContext context;
    v1::AllocatableResourcesResponse answer;
    if (stub->GetAllocatableResources(&context, {}, &answer).ok()) {
      const auto seen =
          std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
              .count();
      int count = 0;
      for (const auto& devices : answer.devices())
        if (devices.resource_name() == argv[2]) count += devices.device_ids_size();
      if (count != last)
        std::cout << "{\"at\":" << seen << ",\"count\":" << count << "}" << std::endl;
      last = count;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
  }
  return 0;
}
