// pretended-kubelet DIR: the fake kubelet of the tests as a program, for agents that run as
// processes. Reads one command per line from standard input and answers each with one line; exits
// at the end of the input. Does not validate commands. Words are percent-encoded, so that a name
// may contain any byte.
//
//   start NAMESPACE POD CONTAINER RESOURCE COUNT
//     Gives devices to a container, as the kubelet does. Answers "ok ID..." or "no REASON".
//   take NAMESPACE POD CONTAINER RESOURCE ID...
//     Gives these devices to a container, whatever their health. Answers "ok ID..." or "no REASON".
//   given
//     Lists what the last container that was started gets. Answers "ok NAME=VALUE... FILE...
//     MOUNT...".
//   has NAMESPACE POD CONTAINER RESOURCE ID...
//     Records that the container already has these devices. Answers "ok".
//   end NAMESPACE POD
//     Removes the pod. Answers "ok".
//   healthy RESOURCE COUNT
//     Waits until so many devices of the resource are healthy. Answers "ok" or "no".
//   told RESOURCE
//     Lists the devices that occurred in any list since the last such command. Answers "ok ID...".
//   steady RESOURCE
//     Lists the devices that were healthy in every list since the last such command. Answers "ok
//     ID...".
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "protocol/kubelet/fake/fake_kubelet.h"

namespace {

using penstock::protocol::kubelet::FakeKubelet;
using penstock::protocol::kubelet::FakePod;

std::string Word(std::istringstream& words) {
  std::string coded, word;
  words >> coded;
  for (std::size_t i = 0; i < coded.size(); ++i) {
    const bool escape = coded[i] == '%' && i + 2 < coded.size();
    word += escape ? static_cast<char>(std::stoi(coded.substr(i + 1, 2), nullptr, 16)) : coded[i];
    if (escape) i += 2;
  }
  return word;
}

class Kubelet {
 public:
  explicit Kubelet(const std::string& folder) : kubelet_(folder) { kubelet_.Start(); }

  std::string Do(std::istringstream words) {
    std::string verb;
    words >> verb;
    if (verb == "start") return Start(words);
    if (verb == "take") return Take(words);
    if (verb == "given") return given_;
    if (verb == "has") return Has(words);
    if (verb == "end") return End(words);
    if (verb == "healthy") return Healthy(words);
    if (verb == "told") return Listed(kubelet_.TakeReported(Word(words)));
    if (verb == "steady") return Listed(kubelet_.TakeSteady(Word(words)));
    return "no such command: " + verb;
  }

 private:
  std::string Start(std::istringstream& words) {
    FakePod pod;
    std::size_t count = 0;
    for (std::string* word : {&pod.namespace_name, &pod.pod, &pod.container, &pod.resource})
      *word = Word(words);
    words >> count;
    const auto enough = [&](const FakeKubelet::Devices& devices) {
      return (pod.ids = Free(devices, pod.resource, count)).size() == count;
    };
    if (!kubelet_.WaitForDevices(pod.resource, enough)) return "no " + pod.resource + " is free";
    return Allocate(pod);
  }

  std::string Take(std::istringstream& words) {
    FakePod pod;
    for (std::string* word : {&pod.namespace_name, &pod.pod, &pod.container, &pod.resource})
      *word = Word(words);
    for (std::string id = Word(words); !id.empty(); id = Word(words)) pod.ids.push_back(id);
    return Allocate(pod);
  }

  std::string Allocate(const FakePod& pod) {
    const auto answer = kubelet_.Allocate(pod.resource, pod.ids);
    if (!answer.ok()) return "no " + answer.error().ToString();
    pods_.push_back(pod);
    kubelet_.SetPods(pods_);
    given_ = "ok";
    for (const auto& [name, value] : answer->environment) given_ += " " + name + "=" + value;
    for (const auto* list : {&answer->files, &answer->mounts})
      for (const std::string& entry : *list) given_ += " " + entry;
    std::string said = "ok";
    for (const std::string& id : pod.ids) said += " " + id;
    return said;
  }

  std::string Has(std::istringstream& words) {
    FakePod pod;
    for (std::string* word : {&pod.namespace_name, &pod.pod, &pod.container, &pod.resource})
      *word = Word(words);
    for (std::string id = Word(words); !id.empty(); id = Word(words)) pod.ids.push_back(id);
    pods_.push_back(pod);
    kubelet_.SetPods(pods_);
    return "ok";
  }

  std::string Healthy(std::istringstream& words) {
    const std::string resource = Word(words);
    std::size_t count = 0;
    words >> count;
    return kubelet_.WaitForHealthy(resource, count) ? "ok" : "no";
  }

  static std::string Listed(const std::vector<std::string>& ids) {
    std::string said = "ok";
    for (const std::string& id : ids) said += " " + id;
    return said;
  }

  std::string End(std::istringstream& words) {
    const std::string space = Word(words), name = Word(words);
    std::erase_if(
        pods_, [&](const FakePod& pod) { return pod.namespace_name == space && pod.pod == name; });
    kubelet_.SetPods(pods_);
    return "ok";
  }

  /// The first healthy devices that no pod has, at most `count`.
  std::vector<std::string> Free(const FakeKubelet::Devices& devices, const std::string& resource,
                                std::size_t count) const {
    std::set<std::string> taken;
    for (const FakePod& pod : pods_)
      if (pod.resource == resource) taken.insert(pod.ids.begin(), pod.ids.end());
    std::vector<std::string> free;
    for (const auto& [id, device] : devices)
      if (device.healthy && !taken.contains(id) && free.size() < count) free.push_back(id);
    return free;
  }

  FakeKubelet kubelet_;
  std::vector<FakePod> pods_;
  std::string given_ = "ok";
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return std::fputs("usage: pretended-kubelet DIR\n", stderr), 2;
  Kubelet kubelet(arguments[1]);
  for (std::string line; std::getline(std::cin, line);)
    std::cout << kubelet.Do(std::istringstream(line)) << std::endl;
}
