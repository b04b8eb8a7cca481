// What an API server does with the definitions that the operator applies.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "operator/embedded_files.h"
#include "protocol/kube/fake/fake_api.h"

namespace penstock::cluster {

inline std::string DefinitionPath(const std::string& name) {
  return "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + name;
}

/// "nodestates.penstock.io": of all that the operator applies, by the names of their files. To
/// parse them again in each test would take a quarter of the CPU time of all.
inline std::vector<std::string> DefinitionNames() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : EmbeddedFiles()) {
    const auto between = file.name.find('_'), end = file.name.rfind('.');
    if (between == std::string_view::npos) continue;
    names.push_back(std::string(file.name.substr(between + 1, end - between - 1)) + "." +
                    std::string(file.name.substr(0, between)));
  }
  return names;
}

/// The server establishes what was applied, as it does within a second.
inline void Establish(protocol::kube::FakeApi& api, const char* established = "True") {
  for (const std::string& name : DefinitionNames()) {
    ASSERT_NE(api.Find(DefinitionPath(name)), nullptr) << name;
    api.Merge(DefinitionPath(name),
              {{"status", {{"conditions", {{{"type", "Established"}, {"status", established}}}}}}});
  }
}

}  // namespace penstock::cluster
