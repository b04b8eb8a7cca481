// Reading what was kept.
#include "os/kept_file.h"

#include <cstdint>
#include <cstdio>

#include "base/log.h"

namespace penstock::os {

void SetAside(const std::string& path, std::string_view what, const base::Error& why) {
  const std::string aside = path + ".damaged";
  base::Log(base::kWarn, std::string(what) + " is damaged and set aside", {{"why", why.message()}, {"kept as", aside}});
  (void)std::rename(path.c_str(), aside.c_str());
}

base::Status CheckKeptVersion(base::MapReader& reader, std::string_view file, int known) {
  reader.Require("version");
  const auto version = reader.Int("version", 1, INT32_MAX);
  if (!version || *version <= known) return {};
  return base::Error(base::Code::kFailedPrecondition, std::string(file) + " was written by a newer Penstock (format " +
                                                          std::to_string(*version) + ", this one knows " + std::to_string(known) +
                                                          "): run that version, or start with another --state-dir");
}

}  // namespace penstock::os
