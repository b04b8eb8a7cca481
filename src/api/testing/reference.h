// Tests the pages of docs/reference against the documents that they describe. For tests only.
#pragma once

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/testing/build_tree.h"

namespace penstock::api {

/// Collects every key of a document, at any depth.
inline void CollectKeys(const nlohmann::json& value, std::vector<std::string>& keys) {
  if (!value.is_structured()) return;  // items() of a scalar is the scalar itself
  for (const auto& [key, below] : value.items()) {
    if (value.is_object()) keys.push_back(key);
    CollectKeys(below, keys);
  }
}

/// Expects that the page names every key of the document.
inline void ExpectToDocument(const std::string& page, const nlohmann::json& document) {
  const std::string reference = base::ReadSource("docs/reference/" + page);
  std::vector<std::string> keys;
  CollectKeys(document, keys);
  EXPECT_GT(keys.size(), 15u);
  for (const std::string& key : keys) EXPECT_THAT(reference, testing::HasSubstr("`" + key + "`"));
}

/// The page's first example in YAML.
inline std::string ExampleOf(const std::string& page) {
  const std::string reference = base::ReadSource("docs/reference/" + page);
  const auto begin = reference.find("```yaml\n");
  EXPECT_NE(begin, std::string::npos) << page;
  if (begin == std::string::npos) return "";
  return reference.substr(begin + 8, reference.find("```", begin + 8) - begin - 8);
}

}  // namespace penstock::api
