// pretended-kubelet DIR: the tests' kubelet as a program, for agents in processes of their own. Reads commands from stdin, one a line,
// and answers each with a line; ends with stdin. Does what it is told, checks nothing. Words are percent-encoded, so that a name may have
// any byte in it.
//
//   start NAMESPACE POD CONTAINER RESOURCE COUNT   a container gets devices, as the kubelet gives them; answers "ok ID..." or "no REASON"
//   has NAMESPACE POD CONTAINER RESOURCE ID...     the container has had these since before; answers "ok"
//   end NAMESPACE POD                              the pod is gone; answers "ok"
//   healthy RESOURCE COUNT                         waits until so many of its devices are; answers "ok" or "no"
//   told RESOURCE                                  the devices that any list since the last such question had; answers "ok ID..."
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "edge/kubelet/fake/fake_kubelet.h"

namespace {

using penstock::edge::kubelet::FakeKubelet;
using penstock::edge::kubelet::FakePod;

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
    if (verb == "has") return Has(words);
    if (verb == "end") return End(words);
    if (verb == "healthy") return Healthy(words);
    if (verb == "told") return Told(words);
    return "no such command: " + verb;
  }

 private:
  std::string Start(std::istringstream& words) {
    FakePod pod;
    std::size_t count = 0;
    for (std::string* word : {&pod.namespace_name, &pod.pod, &pod.container, &pod.resource}) *word = Word(words);
    words >> count;
    const auto enough = [&](const FakeKubelet::Devices& devices) { return (pod.ids = Free(devices, pod.resource, count)).size() == count; };
    if (!kubelet_.WaitForDevices(pod.resource, enough)) return "no " + pod.resource + " is free";
    const auto answer = kubelet_.Allocate(pod.resource, pod.ids);
    if (!answer.ok()) return "no " + answer.error().ToString();
    pods_.push_back(pod);
    kubelet_.SetPods(pods_);
    std::string said = "ok";
    for (const std::string& id : pod.ids) said += " " + id;
    return said;
  }

  std::string Has(std::istringstream& words) {
    FakePod pod;
    for (std::string* word : {&pod.namespace_name, &pod.pod, &pod.container, &pod.resource}) *word = Word(words);
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

  std::string Told(std::istringstream& words) {
    std::string said = "ok";
    for (const std::string& id : kubelet_.TakeTold(Word(words))) said += " " + id;
    return said;
  }

  std::string End(std::istringstream& words) {
    const std::string space = Word(words), name = Word(words);
    std::erase_if(pods_, [&](const FakePod& pod) { return pod.namespace_name == space && pod.pod == name; });
    kubelet_.SetPods(pods_);
    return "ok";
  }

  /// The first of the healthy ones that no pod has, at most so many.
  std::vector<std::string> Free(const FakeKubelet::Devices& devices, const std::string& resource, std::size_t count) const {
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
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return std::fputs("usage: pretended-kubelet DIR\n", stderr), 2;
  Kubelet kubelet(arguments[1]);
  for (std::string line; std::getline(std::cin, line);) std::cout << kubelet.Do(std::istringstream(line)) << std::endl;
}
