// Reads and writes Penstock objects by the description of their fields.
#include "api/cluster/penstock.h"

#include <nlohmann/json.hpp>

#include "api/cluster/kube_json.h"
#include "api/cluster/penstock_check.h"
#include "api/cluster/penstock_fields.h"
#include "api/config/node_config_keys.h"
#include "base/core/json_text.h"
#include "base/yaml.h"

namespace penstock::api {

namespace {

using base::MapReader;
using base::Problems;
using base::Value;

class SpecReader : public base::StructReader {
 public:
  SpecReader(const Value& value, std::string where, Problems& problems, const ConfigTerms& terms)
      : StructReader(value, std::move(where), problems, base::UnknownKeys::kRefused),
        problems_(problems),
        terms_(terms) {}

  template <typename T>
  void Struct(std::string_view key, T& target) {
    if (const Value* found = map().Map(key)) Below(*found, map().Path(key), target);
  }
  template <typename T>
  void Below(const Value& value, std::string where, T& target) {
    SpecReader reader(value, std::move(where), problems_, terms_);
    VisitFields(reader, target);
    reader.Finish();
  }
  void Configuration(std::string_view key, NodeConfig& config) {
    const Value* found = map().Map(key);
    if (found == nullptr) return;
    MapReader reader(*found, map().Path(key), problems_);
    internal::ReadConfig(reader, *found, problems_, terms_, config);
  }

 private:
  Problems& problems_;
  const ConfigTerms& terms_;
};

class SpecWriter : public base::StructWriter<nlohmann::ordered_json> {
 public:
  using StructWriter::StructWriter;

  template <typename T>
  void Struct(std::string_view key, const T& value) {
    SpecWriter writer(json()[std::string(key)]);
    VisitFields(writer, value);
  }
  template <typename T>
  void Items(std::string_view key, const std::vector<T>& items) {
    for (const T& item : items) {
      SpecWriter writer(json()[std::string(key)].emplace_back());
      VisitFields(writer, item);
    }
  }
  void Part(std::string_view key, const KubeJson& value, Value::Kind) {
    if (!value.empty())
      json()[std::string(key)] = base::ParseJson<nlohmann::ordered_json>(value.text);
  }
  void Word(std::string_view key, const std::string& value, const std::vector<std::string>&) {
    if (!value.empty()) json()[std::string(key)] = value;
  }
  void NumberOrPercent(std::string_view key, const std::string& value) {
    if (!value.empty()) json()[std::string(key)] = value;
  }
  void Configuration(std::string_view key, const NodeConfig& config) {
    const std::string yaml = internal::DifferenceAsYaml(config, {});
    const auto document = base::ParseYaml(yaml, key);
    if (document.ok() && document->map)
      json()[std::string(key)] = base::JsonOf<nlohmann::ordered_json>(*document);
  }
};

constexpr std::string_view kPenstockVersion = "penstock.io/v1alpha1";
constexpr std::string_view kPenstockKind = "Penstock";

void ReadObjectHeader(MapReader& top) {
  for (const auto& [key, wanted] :
       {std::pair("apiVersion", kPenstockVersion), std::pair("kind", kPenstockKind)}) {
    top.Require(key);
    if (const auto text = top.String(key); text && *text != wanted)
      top.Problem(key, "is \"" + *text + "\"; this program reads \"" + std::string(wanted) + "\"");
  }
  (void)top.Map("metadata");
  (void)top.Map("status");
}

}  // namespace

base::Result<PenstockSpec> ParsePenstock(std::string_view object, std::string_view where,
                                         const ConfigTerms& terms, const PenstockSpec& base,
                                         std::vector<std::string>* remarks) {
  ASSIGN(const Value document, base::ParseJson(object, where));
  Problems problems{std::string(where)};
  MapReader top(document, "", problems);
  PenstockSpec spec = base;
  if (document.kind != Value::Kind::kMap) {
    if (problems.empty()) problems.Add(document.mark, "is not an object");
    return problems.ToError();
  }
  ReadObjectHeader(top);
  if (const Value* found = top.Map("spec")) {
    SpecReader reader(*found, "spec", problems, terms);
    VisitFields(reader, spec);
    reader.Finish();
  }
  top.Finish();
  internal::CheckPenstock(spec, [&](std::string_view path, const std::string& message) {
    const std::string full = "spec." + std::string(path);
    problems.Add(internal::MarkOf(document, full), full + ": " + message);
  });
  if (!problems.empty()) return problems.ToError();
  if (remarks != nullptr) *remarks = problems.Remarks();
  return spec;
}

std::string ToJson(const PenstockSpec& spec) {
  nlohmann::ordered_json json;
  SpecWriter writer(json);
  VisitFields(writer, spec);
  return base::JsonText(json);
}

}  // namespace penstock::api
