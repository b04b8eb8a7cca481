// pretended-plugin FOLDER SOCKET [RESOURCE COUNT]: a device plugin of another program, which shares
// only the messages with the agent's. Listens on SOCKET in a kubelet's device-plugins folder,
// writes "ok", and serves until its standard input ends. With RESOURCE it registers there, with so
// many devices; without, it only answers, as a process does that has no access to the kubelet.
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>

#include <grpcpp/create_channel.h>
#include <grpcpp/server_builder.h>

#include "deviceplugin.grpc.pb.h"

namespace {

class Plugin final : public v1beta1::DevicePlugin::Service {
 public:
  explicit Plugin(int count) {
    for (int i = 0; i < count; ++i) {
      v1beta1::Device* const device = list_.add_devices();
      device->set_id("theirs-" + std::to_string(i));
      device->set_health("Healthy");
    }
  }

  grpc::Status GetDevicePluginOptions(grpc::ServerContext* /*context*/,
                                      const v1beta1::Empty* /*request*/,
                                      v1beta1::DevicePluginOptions* /*options*/) override {
    return grpc::Status::OK;
  }

  grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty* /*request*/,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override {
    writer->Write(list_);
    while (!context->IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return grpc::Status::OK;
  }

 private:
  v1beta1::ListAndWatchResponse list_;
};

grpc::Status Register(const std::string& folder, const std::string& socket,
                      const std::string& resource) {
  const auto kubelet = v1beta1::Registration::NewStub(
      grpc::CreateChannel("unix:" + folder + "/kubelet.sock", grpc::InsecureChannelCredentials()));
  v1beta1::RegisterRequest request;
  request.set_version("v1beta1");
  request.set_endpoint(socket);
  request.set_resource_name(resource);
  grpc::ClientContext context;
  v1beta1::Empty answer;
  return kubelet->Register(&context, request, &answer);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3 && count != 5)
    return std::fputs("usage: pretended-plugin FOLDER SOCKET [RESOURCE COUNT]\n", stderr), 2;
  const std::string folder = arguments[1], socket = arguments[2];
  Plugin plugin(count == 5 ? std::stoi(arguments[4]) : 0);
  const auto server =
      grpc::ServerBuilder()
          .AddListeningPort("unix:" + folder + "/" + socket, grpc::InsecureServerCredentials())
          .RegisterService(&plugin)
          .BuildAndStart();
  if (server == nullptr) return 1;
  if (count == 5) {
    if (const auto registered = Register(folder, socket, arguments[3]); !registered.ok())
      return std::fprintf(stderr, "%s\n", registered.error_message().c_str()), 1;
  }
  std::cout << "ok" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {}
  server->Shutdown(std::chrono::system_clock::now());
}
