// Tests what policies contribute.
#include "operator/effective_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::cluster {
namespace {

using testing::HasSubstr;

TEST(EffectiveSpec, AnswersDriversSinceTheyAreNotServedYet) {
  const std::vector<PolicyObject> policies = {
      {&api::compat::PenstockKind(),
       nlohmann::json::parse(R"({"apiVersion": "penstock.io/v1alpha1", "kind": "Penstock",
                                 "metadata": {"name": "p"},
                                 "spec": {"drivers": [{"name": "blue"}]}})")}};
  const EffectiveSpec effective = ComputeSpec(policies);
  ASSERT_TRUE(effective.spec);
  ASSERT_EQ(effective.outcomes.size(), 1u);
  ASSERT_EQ(effective.outcomes[0].answers.size(), 1u);
  EXPECT_EQ(effective.outcomes[0].answers[0].fate, api::compat::FieldFate::kNotServed);
  EXPECT_THAT(effective.outcomes[0].answers[0].field, HasSubstr("spec.drivers"));
}

}  // namespace
}  // namespace penstock::cluster
