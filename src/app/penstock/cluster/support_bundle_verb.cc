#include <iostream>
#include <memory>

#include "app/penstock/cluster/support_bundle.h"
#include "app/penstock/common/verbs.h"
#include "base/core/strings.h"
#include "os/core/file.h"
#include "protocol/http/gzip.h"

namespace penstock::app {

using base::Code;
using base::Error;

namespace {

constexpr char kBundleExamples[] =
    R"(PROGRAM support-bundle
PROGRAM support-bundle --file /tmp/gpus.tar.gz --lines 20000
PROGRAM support-bundle --file - | tar --list --gzip)";

constexpr char kBundleDetails[] =
    R"(Objects, events, explanations of the nodes and logs of Penstock, for a report of a problem. Reads no Secret and no
object of users; values of environment variables with secret names are removed. Look through it before you publish it:
it names nodes, namespaces and devices. What may not be read is left out and listed in index.txt.)";

constexpr int kMostLines = 1'000'000;
constexpr char kStandardOutput[] = "-";

struct SupportBundleOptions {
  ClusterOptions cluster;
  BundleOptions bundle;
  std::string file;
  std::int64_t lines = BundleOptions{}.lines;
  bool no_logs = false, force = false;
};

/// "penstock-support-2026-11-27T010203Z": the archive's folder, and its name.
std::string DefaultName(base::WallTime now) {
  std::string name = "penstock-support-" + base::FormatTime(now);
  std::erase(name, ':');
  return name;
}

base::Status WriteBundle(const std::string& path, const std::string& archive, bool force) {
  if (path == kStandardOutput) return os::WriteAll(1, archive, "standard output");
  if (!force && os::Exists(path))
    return Error(Code::kAlreadyExists, path + " exists: choose another --file, or pass --force");
  return os::WriteFileAtomically(path, archive, 0600);
}

base::Result<Shown> MakeBundle(const Common& common, SupportBundleOptions options) {
  const base::WallTime now = std::chrono::system_clock::now();
  const std::string name = DefaultName(now);
  if (options.file.empty()) options.file = name + ".tar.gz";
  options.bundle.logs = !options.no_logs;
  options.bundle.lines = static_cast<int>(options.lines);
  ASSIGN(const Cluster cluster, FindCluster(Completed(options.cluster, common)));
  auto files = GatherBundle(
      cluster.server, options.bundle,
      [&common](const std::string& step) {
        if (common.terminal) std::cerr << step << "\n";
      },
      now);
  for (ArchivedFile& file : files) file.path.insert(0, name + "/");
  ASSIGN(const std::string archive, Tar(files, now));
  ASSIGN(const std::string compressed, protocol::http::Gzip(archive));
  TRY(WriteBundle(options.file, compressed, options.force));
  if (options.file == kStandardOutput) return Shown("");
  return Shown(options.file + ": " + std::to_string(files.size()) + " files, " +
               std::to_string(compressed.size() / 1024) + " KiB");
}

}  // namespace

Verb SupportBundleVerb(const Common& common, const std::string& program) {
  const auto options = std::make_shared<SupportBundleOptions>();
  Verb verb{
      .name = "support-bundle",
      .summary = "Gather what helps to find a fault in a cluster, as an archive",
      .examples = ForProgram(kBundleExamples, program),
      .details = kBundleDetails,
      .exit_status = "0 written, 1 the cluster could not be queried, or the file not be written",
      .options = {Value("-f,--file", &options->file, "FILE",
                        "the archive; - for standard output [penstock-support-TIME.tar.gz]"),
                  Flag("--no-logs", &options->no_logs, "leave out logs"),
                  Value("--lines", &options->lines, "N", "lines of each log, the last ones [5000]")
                      .Checked([](const std::string& text) -> std::string {
                        const auto lines = base::ParseInt(text);
                        return lines && *lines > 0 && *lines <= kMostLines
                                   ? ""
                                   : "a number from 1 to " + std::to_string(kMostLines) +
                                         " is expected";
                      }),
                  Flag("--force", &options->force, "overwrite the file")},
      .show = [&common, options] { return MakeBundle(common, *options); }};
  AddClusterOptions(verb, options->cluster);
  return verb;
}

}  // namespace penstock::app
