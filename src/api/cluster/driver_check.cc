// Checks the drivers of a Penstock object.
#include <algorithm>
#include <cctype>

#include "api/cluster/label_selector.h"
#include "api/cluster/penstock_check.h"
#include "api/labels.h"

namespace penstock::api::internal {
namespace {

void CheckSelector(const std::string& path, const std::string& text, const ReportProblem& report) {
  if (const auto selector = LabelSelector::Parse(text); !selector.ok())
    report(path, selector.error().message());
}

void CheckUpgrade(const std::string& path, const UpgradePolicy& policy,
                  const ReportProblem& report) {
  CheckSelector(path + ".wait.podSelector", policy.wait.pod_selector, report);
  CheckSelector(path + ".drain.podSelector", policy.drain.pod_selector, report);
  CheckLabelMap(path + ".canaries.nodeSelector", policy.canaries.node_selector, report);
}

void CheckImagePart(const std::string& path, const std::string& part, const ReportProblem& report) {
  if (std::ranges::any_of(part, [](unsigned char c) { return std::isgraph(c) == 0; }))
    report(path, "\"" + part + "\" cannot be a part of an image's name");
}

void CheckDriverImage(const std::string& path, const ImageParts& image,
                      const ReportProblem& report) {
  CheckImagePart(path + ".repository", image.repository, report);
  CheckImagePart(path + ".image", image.image, report);
  CheckImagePart(path + ".version", image.version, report);
  for (const std::string& secret : image.pull_secrets)
    CheckObject(path + ".imagePullSecrets", secret, "Secret", report);
}

void CheckFiles(const std::string& path, const DriverFiles& files, const ReportProblem& report) {
  for (const auto& [key, name] :
       {std::pair(".repositories", &files.repositories),
        std::pair(".certificates", &files.certificates),
        std::pair(".moduleOptions", &files.module_options),
        std::pair(".license", &files.license_map), std::pair(".topology", &files.topology)})
    CheckObject(path + key, *name, "ConfigMap", report);
  CheckObject(path + ".licenseSecret", files.license_secret, "Secret", report);
  CheckObject(path + ".variables", files.variables, "Secret", report);
}

void CheckNodesOf(const std::string& path, const DriverSpec& driver, const ReportProblem& report) {
  CheckLabelMap(path + ".nodeSelector", driver.node_selector, report);
  if (const auto affinity = NodeAffinity::Parse(driver.node_affinity); !affinity.ok())
    report(path + ".nodeAffinity", affinity.error().message());
  if (driver.fallback && !(driver.node_selector.empty() && driver.node_affinity.empty()))
    report(path + ".default",
           "is for the nodes that no other driver selects, and has no selector of its own");
}

}  // namespace

void CheckDriver(const std::string& path, const DriverSpec& driver, const ReportProblem& report) {
  if (!driver.name.empty() && !IsObjectName(driver.name, true)) {
    report(path + ".name", "\"" + driver.name + "\" is not the name of an object");
  } else if (!IsLabelValue(driver.name)) {
    report(path + ".name", "\"" + driver.name +
                               "\" has more than 63 characters, and is the value of a label of "
                               "the driver's nodes");
  }
  CheckDriverImage(path + ".image", driver.image, report);
  CheckNodesOf(path, driver, report);
  CheckFiles(path + ".files", driver.files, report);
  CheckVariables(path + ".env", driver.environment, report);
  CheckVariables(path + ".prepareEnv", driver.prepare_environment, report);
  CheckObject(path + ".priorityClassName", driver.priority_class, "PriorityClass", report);
  CheckLabelMap(path + ".labels", driver.labels, report);
  CheckAnnotations(path + ".annotations", driver.annotations, report);
  CheckUpgrade(path + ".upgrade", driver.upgrade, report);
}

}  // namespace penstock::api::internal
