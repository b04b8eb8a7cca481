#include "app/penstock/local/query_agent.h"

#include "protocol/broker/client.h"

namespace penstock::app {

base::Result<std::string> QueryLine(const std::string& run_dir, std::string_view request) {
  ASSIGN(auto client, protocol::broker::Client::Connect(run_dir));
  return client.Query(request);
}

base::Result<api::Report> QueryReport(const std::string& run_dir) {
  ASSIGN(const std::string answer, QueryLine(run_dir, R"({"op":"status"})"));
  return api::ParseReport(answer);
}

}  // namespace penstock::app
