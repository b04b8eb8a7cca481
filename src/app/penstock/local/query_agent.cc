#include "app/penstock/local/query_agent.h"

#include <chrono>
#include <iostream>

#include <unistd.h>

#include "app/penstock/local/show.h"
#include "protocol/broker/client.h"

namespace penstock::app {

namespace {

int Fail(std::string_view verb, const base::Error& error) {
  std::cerr << "penstock " << verb << ": " << error.message() << "\n";
  return 1;
}

/// The output of the verb, without the final line feed.
base::Result<std::string> StatusText(const Common& common) {
  ASSIGN(const api::NodeConfig config, Resolve(common.settings));
  if (common.json) return QueryLine(config.paths.run_dir, R"({"op":"status"})");
  ASSIGN(const api::Report report, QueryReport(config.paths.run_dir));
  return ShowStatus(report, common.wide, StyleOf(STDOUT_FILENO), std::chrono::system_clock::now());
}

base::Result<std::string> PsText(const Common& common) {
  ASSIGN(const api::NodeConfig config, Resolve(common.settings));
  if (common.json) return QueryLine(config.paths.run_dir, R"({"op":"ps"})");
  ASSIGN(const api::Report report, QueryReport(config.paths.run_dir));
  return ShowHolders(report, common.wide, StyleOf(STDOUT_FILENO), std::chrono::system_clock::now());
}

int Print(std::string_view verb, const base::Result<std::string>& text) {
  if (!text.ok()) return Fail(verb, text.error());
  std::cout << *text << (text->ends_with('\n') ? "" : "\n");
  return std::cout.flush() ? 0 : 1;
}

}  // namespace

base::Result<std::string> QueryLine(const std::string& run_dir, std::string_view request) {
  ASSIGN(auto client, protocol::broker::Client::Connect(run_dir));
  return client.Query(request);
}

base::Result<api::Report> QueryReport(const std::string& run_dir) {
  ASSIGN(const std::string answer, QueryLine(run_dir, R"({"op":"status"})"));
  return api::ParseReport(answer);
}

int Status(const Common& common) { return Print("status", StatusText(common)); }
int Ps(const Common& common) { return Print("ps", PsText(common)); }

}  // namespace penstock::app
