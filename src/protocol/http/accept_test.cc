#include "protocol/http/accept.h"

#include <array>

#include <gtest/gtest.h>

namespace penstock::protocol::http {
namespace {

constexpr std::array<MediaType, 2> kOffers = {
    {{"text/plain", "0.0.4"}, {"application/openmetrics-text", "1.0.0"}}};

struct Case {
  const char* who;
  const char* accept;
  bool open_metrics;
};

// The headers are those that the programs send; for Prometheus: scrape/scrape.go, acceptHeader.
constexpr Case kCases[] = {
    {"curl", "*/*", false},
    {"nobody", "", false},
    {"a browser", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
     false},
    {"Prometheus 2.42",
     "application/openmetrics-text;version=1.0.0,application/"
     "openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/"
     "*;q=0.1",
     true},
    {"Prometheus 2.55",
     "application/openmetrics-text;version=1.0.0;q=0.5,application/"
     "openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/"
     "*;q=0.2",
     true},
    {"Prometheus 3",
     "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/"
     "openmetrics-text;version=0.0.1;q=0.4,text/"
     "plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,/;q=0.1",
     true},
    {"Prometheus with native histograms",
     "application/"
     "vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,"
     "application/"
     "openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1",
     true},
    {"Prometheus 1 and its kin",
     "application/"
     "vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,text/"
     "plain;version=0.0.4;q=0.3",
     false},
    {"text liked better", "application/openmetrics-text;q=0.3,text/plain", false},
    {"OpenMetrics of no version", "application/openmetrics-text", true},
    {"OpenMetrics of another version",
     "application/openmetrics-text;version=2.0.0, text/plain;q=0.1", false},
    {"equals, in the client's order", "application/openmetrics-text, text/plain", true},
    {"equals, the other way round", "text/plain, application/openmetrics-text", false},
    {"a whole kind", "application/*, text/plain;q=0.9", true},
    {"the closest counts", "*/*, text/plain;q=0.1, application/openmetrics-text;q=0.2", true},
    {"not at any price", "application/openmetrics-text;q=0, */*", false},
    {"neither", "image/png", false},
    {"quoted, in capitals, with blanks",
     " Application/OpenMetrics-Text ; Version=\"1.0.0\" ; Q=0.9 , text/plain;q=0.5", true},
    {"odd qualities", "application/openmetrics-text;q=5, text/plain;q=abc, */*;q=0.1", false},
    {"garbage", ";;,,=;q=,/", false},
};

TEST(Accept, ChoosesWhatTheClientWouldRatherHave) {
  for (const Case& one : kCases)
    EXPECT_EQ(ChooseType(one.accept, kOffers), one.open_metrics ? 1u : 0u) << one.who;
}

TEST(Accept, CompressesOnlyForThoseWhoWantIt) {
  for (const char* wants : {"gzip", "gzip, deflate", "GZIP;q=0.5", "*", "deflate, *;q=0.1",
                            "identity;q=0.5, gzip", "x-gzip"})
    EXPECT_TRUE(WantsGzip(wants)) << wants;
  for (const char* does_not :
       {"", "deflate", "gzip;q=0", "identity, gzip;q=0.5", "*;q=0", "gzip;q=0, *", "zip"})
    EXPECT_FALSE(WantsGzip(does_not)) << does_not;
}

}  // namespace
}  // namespace penstock::protocol::http
