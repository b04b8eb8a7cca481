#include "api/compat/nvidia/gpu_clients.h"

#include "api/config/service_names.h"
#include "base/core/document.h"
#include "base/yaml.h"

namespace penstock::api::compat {

Result<std::vector<std::string>> TranslateGpuClients(std::string_view text, std::string_view file) {
  base::Problems problems{std::string(file)};
  ASSIGN(const base::Value document, base::ParseYamlOrJson(text, problems));
  std::vector<std::string> services;
  if (document.kind == base::Value::Kind::kNull && problems.empty()) return services;
  base::MapReader top(document, "", problems);
  top.Require("version");
  if (const auto version = top.String("version"); version && *version != "v1")
    top.Problem("version", "is \"" + *version + "\"; this program reads \"v1\"");
  if (const base::Value* list = top.List("systemd-services"))
    services = ReadServiceNames(
        *list, top.Path("systemd-services"), "",
        [&problems](base::Mark mark, const std::string& problem) { problems.Add(mark, problem); });
  top.Finish();
  if (!problems.empty()) return problems.ToError();
  return services;
}

}  // namespace penstock::api::compat
