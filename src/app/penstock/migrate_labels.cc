// GPU Feature Discovery's labels read back into facts, and these told by our own dialect: what is the same and what is not.
#include "app/penstock/migrate.h"
#include "base/core/strings.h"
#include "vendor/all.h"

namespace penstock::app {

namespace {

using Labels = std::map<std::string, std::string>;

constexpr int kMostGpus = 64, kMostReplicas = 10000;  // a label that says more is not believed

std::string Text(const Labels& labels, const std::string& key) {
  const auto found = labels.find("nvidia.com/" + key);
  return found == labels.end() ? "" : found->second;
}

/// How the labels say that each GPU is shared; nothing is known of what holds the holders apart.
device::LabelShare ShareOf(const Labels& labels) {
  device::LabelShare share;
  const auto replicas = base::ParseInt(Text(labels, "gpu.replicas")).value_or(1);
  if (replicas < 2 || replicas > kMostReplicas) return share;
  const bool mps = Text(labels, "gpu.sharing-strategy") == "mps";
  share.shape = {mps ? device::Sharing::kMps : device::Sharing::kTimeSlicing, static_cast<int>(replicas)};
  share.renamed = !Text(labels, "gpu.product").ends_with("-SHARED");
  return share;
}

/// The model's name without what says how its GPUs are given out: "Tesla-T4-SHARED", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb".
std::string ModelOf(std::string product) {
  if (product.ends_with("-SHARED")) product.resize(product.size() - std::string_view("-SHARED").size());
  return product.substr(0, product.find("-MIG-"));
}

device::Facts FactsOf(const Labels& labels, int index) {
  device::Facts facts;
  facts.id = "GPU-" + std::to_string(index);
  facts.vendor = "nvidia";
  facts.index = index;
  facts.model = ModelOf(Text(labels, "gpu.product"));
  facts.memory = base::Mebibytes(base::ParseUint(Text(labels, "gpu.memory")).value_or(0));
  facts.architecture = Text(labels, "gpu.family");
  const std::string major = Text(labels, "gpu.compute.major"), minor = Text(labels, "gpu.compute.minor");
  if (!major.empty() && !minor.empty()) facts.architecture_version = major + "." + minor;
  return facts;
}

}  // namespace

Labels PredictLabels(const Labels& now) {
  const device::Dialect* dialect = vendor::FindDialect("nvidia");
  const auto count = base::ParseInt(Text(now, "gpu.count")).value_or(0);
  if (dialect == nullptr || count <= 0 || count > kMostGpus) return {};
  std::vector<device::Facts> gpus;
  for (int i = 0; i < count; ++i) gpus.push_back(FactsOf(now, i));
  device::Driver driver{
      .vendor = "nvidia", .version = Text(now, "cuda.driver-version.full"), .runtime_version = Text(now, "cuda.runtime-version.full")};
  if (driver.version.empty()) {  // before 0.15 there was no label for the whole
    driver.version = Text(now, "cuda.driver.major") + "." + Text(now, "cuda.driver.minor");
    if (const std::string revision = Text(now, "cuda.driver.rev"); !revision.empty()) driver.version += "." + revision;
  }
  if (driver.runtime_version.empty()) driver.runtime_version = Text(now, "cuda.runtime.major") + "." + Text(now, "cuda.runtime.minor");
  device::LabelFacts facts{.driver = &driver, .machine = Text(now, "gpu.machine")};
  for (const device::Facts& gpu : gpus) {
    facts.devices.push_back(&gpu);
    facts.shares.push_back(ShareOf(now));
  }
  return dialect->Labels(facts);
}

}  // namespace penstock::app
