// Three-valued logic: a requirement on the brand, which no specification states, neither holds nor
// fails.
#include "hook/runtime/nvidia/requirements.h"

#include <algorithm>
#include <compare>
#include <optional>
#include <utility>

#include "base/core/strings.h"

namespace penstock::hook::runtime {
namespace {

constexpr std::string_view kPrefix = "NVIDIA_REQUIRE_";
constexpr std::string_view kJetpack =
    "NVIDIA_REQUIRE_JETPACK";  ///< on Tegra: lists mounts, requires nothing

enum class Truth { kNo, kUnknown, kYes };

/// "12.4" as numbers; nothing for other texts.
std::optional<std::vector<std::uint64_t>> ParseVersion(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  std::vector<std::uint64_t> numbers;
  for (const std::string& part : base::Split(text, '.')) {
    const auto number = base::ParseUint(part);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  while (!numbers.empty() && numbers.back() == 0) numbers.pop_back();
  return numbers;
}

bool Holds(std::strong_ordering order, std::string_view relation) {
  if (relation == "=") return order == 0;
  if (relation == "!=") return order != 0;
  if (relation == "<") return order < 0;
  if (relation == "<=") return order <= 0;
  if (relation == ">") return order > 0;
  return order >= 0;
}

/// Evaluates one comparison: "cuda>=12.4".
Result<Truth> JudgeFactor(std::string_view factor, const DriverFacts& driver) {
  const Error malformed(Code::kInvalidArgument,
                        "has " + Shown(factor) + ", which is not a requirement such as cuda>=12.4");
  const auto begin = factor.find_first_of("<>=!"), end = factor.find_first_not_of("<>=!", begin);
  if (begin == 0 || begin == std::string_view::npos || end == std::string_view::npos)
    return malformed;
  const std::string property = base::ToLower(factor.substr(0, begin));
  const std::string_view relation = factor.substr(begin, end - begin);
  constexpr std::string_view kRelations[] = {"=", "!=", "<", "<=", ">", ">="};
  if (std::ranges::find(kRelations, relation) == std::end(kRelations)) return malformed;
  const std::string* value = property == "cuda"     ? &driver.cuda
                             : property == "driver" ? &driver.driver
                                                    : nullptr;
  const auto wanted = ParseVersion(factor.substr(end));
  if (value == nullptr) return Truth::kUnknown;
  if (!wanted) return malformed;
  const auto have = ParseVersion(*value);
  if (value->empty() || !have) return Truth::kUnknown;
  return Holds(*have <=> *wanted, relation) ? Truth::kYes : Truth::kNo;
}

/// Evaluates "brand=tesla,driver>=535": all must hold.
Result<Truth> JudgeTerm(std::string_view term, const DriverFacts& driver) {
  Truth truth = Truth::kYes;
  for (const std::string& factor : base::Split(term, ',')) {
    if (factor.empty()) continue;
    ASSIGN(const Truth one, JudgeFactor(factor, driver));
    truth = std::min(truth, one);
    if (truth == Truth::kNo) break;
  }
  return truth;
}

/// Evaluates whether any of the terms holds; an empty requirement holds.
Result<Truth> Judge(std::string_view requirement, const DriverFacts& driver) {
  std::optional<Truth> truth;
  for (const std::string& term : base::Split(requirement, ' ')) {
    if (term.empty()) continue;
    ASSIGN(const Truth one, JudgeTerm(term, driver));
    truth = std::max(truth.value_or(Truth::kNo), one);
    if (truth == Truth::kYes) break;
  }
  return truth.value_or(Truth::kYes);
}

/// As Go's strconv.ParseBool.
bool IsTrue(std::string_view text) {
  return text == "1" || text == "t" || text == "T" || text == "true" || text == "True" ||
         text == "TRUE";
}

/// Requirements by variable name. Images older than NVIDIA_REQUIRE_CUDA require the CUDA version
/// that they contain.
std::vector<std::pair<std::string, std::string>> Requirements(const RuntimeFacts& facts) {
  std::vector<std::pair<std::string, std::string>> all;
  for (auto i = facts.environment.lower_bound(kPrefix);
       i != facts.environment.end() && i->first.starts_with(kPrefix); ++i)
    if (!i->first.starts_with(kJetpack)) all.emplace_back(*i);
  if (facts.Get("NVIDIA_REQUIRE_CUDA").empty()) {
    const auto parts = base::Split(facts.Get("CUDA_VERSION"), '.');
    const auto major = base::ParseUint(parts.front()),
               minor = parts.size() > 1 ? base::ParseUint(parts[1]) : 0;
    if (major && minor)
      all.emplace_back("CUDA_VERSION",
                       "cuda>=" + std::to_string(*major) + "." + std::to_string(*minor));
  }
  return all;
}

std::string ShownFacts(const DriverFacts& driver) {
  const auto show = [](const std::string& value) {
    return value.empty() ? std::string("unknown") : Shown(value);
  };
  return "driver " + show(driver.driver) + ", CUDA " + show(driver.cuda);
}

void ReadVersionLibrary(const api::cdi::CdiEdits& edits, DriverFacts& facts) {
  constexpr std::string_view kLibrary = "/libcuda.so.";
  for (const api::cdi::Mount& mount : edits.mounts) {
    const auto at = mount.host_path.rfind(kLibrary);
    if (at == std::string::npos) continue;
    const std::string version = mount.host_path.substr(at + kLibrary.size());
    if (version.find('.') != std::string::npos && ParseVersion(version)) facts.driver = version;
  }
}

}  // namespace

DriverFacts ReadDriverFacts(const api::cdi::CdiEdits& edits) {
  DriverFacts facts;
  const std::pair<std::string_view, std::string*> options[] = {
      {"--host-driver-version", &facts.driver}, {"--host-cuda-version", &facts.cuda}};
  for (const api::cdi::Hook& hook : edits.hooks)
    for (std::size_t i = 0; i < hook.args.size(); ++i)
      for (const auto& [option, fact] : options) {
        if (hook.args[i] == option && i + 1 < hook.args.size()) *fact = hook.args[i + 1];
        if (hook.args[i].starts_with(std::string(option) + "="))
          *fact = hook.args[i].substr(option.size() + 1);
      }
  if (facts.driver.empty()) ReadVersionLibrary(edits, facts);
  return facts;
}

Result<std::vector<Remark>> CheckRequirements(const RuntimeFacts& facts, const Config& config,
                                              const DriverFacts& driver) {
  std::vector<Remark> remarks;
  if (config.disable_require || IsTrue(facts.Get("NVIDIA_DISABLE_REQUIRE"))) return remarks;
  for (const auto& [variable, requirement] : Requirements(facts)) {
    auto truth = Judge(requirement, driver);
    const std::string name = Shown(variable);
    if (!truth.ok())
      return Error(truth.error().code(), name + " " + truth.error().message() +
                                             "; correct it, or set NVIDIA_DISABLE_REQUIRE=1");
    if (*truth == Truth::kNo)
      return Error(
          Code::kFailedPrecondition,
          "the image requires " + Shown(requirement) + " (" + name + "), but this machine has " +
              ShownFacts(driver) +
              "; update the driver, use an image built for it, or set NVIDIA_DISABLE_REQUIRE=1");
    if (*truth == Truth::kUnknown)
      remarks.push_back(
          {RuntimeLogLevel::kInfo, "cannot check requirement " + Shown(requirement) + " (" + name +
                                       "): the specification has " + ShownFacts(driver) +
                                       " but no brand or architecture; starting the container"});
  }
  return remarks;
}

}  // namespace penstock::hook::runtime
