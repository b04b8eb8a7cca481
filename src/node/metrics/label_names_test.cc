#include "node/metrics/label_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::node::metrics {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// The cases of kube-state-metrics' own test of kubeMapToPrometheusLabels.
TEST(LabelNames, KubeLabelsAreNamedAsKubeStateMetricsNamesThem) {
  EXPECT_THAT(
      KubeLabels(
          {{"an", "1"}, {"app.kubernetes.io/name", "2"}, {"camelCase", "3"}, {"1digit", "4"}}),
      ElementsAre(Pair("label_1digit", "4"), Pair("label_an", "1"),
                  Pair("label_app_kubernetes_io_name", "2"), Pair("label_camel_case", "3")));
  EXPECT_THAT(KubeLabels({}), testing::IsEmpty());
}

TEST(LabelNames, KubeLabelsThatWouldBeCalledTheSameAreNumbered) {
  EXPECT_THAT(
      KubeLabels({{"conflicting_label1", "a"},
                  {"conflicting.label1", "b"},
                  {"other", "c"},
                  {"conflicting-label1", "d"}}),
      ElementsAre(Pair("label_conflicting_label1_conflict1", "d"),
                  Pair("label_conflicting_label1_conflict2", "b"),
                  Pair("label_conflicting_label1_conflict3", "a"), Pair("label_other", "c")));
  EXPECT_THAT(KubeLabels({{"a-b", "1"}, {"a.b", "2"}, {"a_b_conflict2", "3"}}),
              ElementsAre(Pair("label_a_b_conflict1", "1"), Pair("label_a_b_conflict2", "2"),
                          Pair("label_a_b_conflict2_", "3")));
}

TEST(LabelNames, PlainLabelsKeepTheirNamesWhereTheyCan) {
  EXPECT_THAT(PlainLabels({{"app.kubernetes.io/name", "1"}, {"Team", "2"}}, {}),
              ElementsAre(Pair("Team", "2"), Pair("app_kubernetes_io_name", "1")));
}

TEST(LabelNames, PlainLabelsTakeNoOnesName) {
  EXPECT_THAT(PlainLabels({{"gpu", "1"}, {"__name__", "2"}, {"9", "3"}, {"", "4"}}, {{"gpu", "0"}}),
              ElementsAre(Pair("label_", "4"), Pair("label_9", "3"), Pair("label___name__", "2"),
                          Pair("label_gpu", "1")));
  EXPECT_THAT(PlainLabels({{"a-b", "1"}, {"a.b", "2"}}, {}),
              ElementsAre(Pair("a_b", "1"), Pair("label_a_b_conflict2", "2")));
  EXPECT_THAT(PlainLabels({{"gpu", "1"}, {"label-gpu", "2"}}, {{"gpu", "0"}}),
              ElementsAre(Pair("label_gpu", "1"), Pair("label_label_gpu", "2")));
}

TEST(LabelNames, WhatIsNotAsciiIsNoLetter) {
  EXPECT_THAT(PlainLabels({{"ü", "1"}}, {}), ElementsAre(Pair("label___", "1")));
}

}  // namespace
}  // namespace penstock::node::metrics
