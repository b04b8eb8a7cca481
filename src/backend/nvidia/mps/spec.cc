#include "backend/nvidia/mps/spec.h"

#include <algorithm>

#include "backend/nvidia/mig.h"
#include "base/core/strings.h"

namespace penstock::backend::nvidia::mps {

bool ServerSpec::Gpu::is_mig_device() const { return IsMigDevice(id); }

ServerSpec SpecOf(const device::SharedSet& set) {
  ServerSpec spec;
  spec.set = set.name;
  int fewest = 0;
  for (const device::SharedSet::Member& member : set.members) {
    const int shares = std::max(member.shares, 1);
    const auto memory =
        base::Mebibytes(member.device->memory.mebibytes() / static_cast<std::uint64_t>(shares));
    spec.gpus.push_back({member.device->id, shares, memory});
    fewest = fewest == 0 ? shares : std::min(fewest, shares);
  }
  spec.percentage = std::max(1, 100 / std::max(fewest, 1));
  return spec;
}

// set;percentage;id=shares:MiB;...
std::string WriteSpec(const ServerSpec& spec) {
  std::string text = spec.set + ";" + std::to_string(spec.percentage);
  for (const ServerSpec::Gpu& gpu : spec.gpus)
    text += ";" + gpu.id + "=" + std::to_string(gpu.shares) + ":" +
            std::to_string(gpu.memory.mebibytes());
  return text;
}

std::optional<ServerSpec> ReadSpec(std::string_view text) {
  const auto parts = base::Split(base::Trim(text), ';');
  if (parts.size() < 3 || parts[0].empty()) return std::nullopt;
  ServerSpec spec;
  spec.set = parts[0];
  const auto percentage = base::ParseUint(parts[1]);
  if (!percentage || *percentage < 1 || *percentage > 100) return std::nullopt;
  spec.percentage = static_cast<int>(*percentage);
  for (std::size_t i = 2; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].rfind('='), colon = parts[i].rfind(':');
    if (equals == std::string::npos || colon == std::string::npos || equals == 0 || colon < equals)
      return std::nullopt;
    const auto shares = base::ParseUint(parts[i].substr(equals + 1, colon - equals - 1));
    const auto memory = base::ParseUint(parts[i].substr(colon + 1));
    if (!shares || *shares < 1 || *shares > 1u << 20 || !memory || *memory > 1u << 30)
      return std::nullopt;
    spec.gpus.push_back(
        {parts[i].substr(0, equals), static_cast<int>(*shares), base::Mebibytes(*memory)});
  }
  return spec;
}

std::string VisibleDevices(const ServerSpec& spec) {
  std::vector<std::string> ids;
  for (const ServerSpec::Gpu& gpu : spec.gpus) ids.push_back(gpu.id);
  return base::Join(ids, ",");
}

std::string MemoryLimits(const ServerSpec& spec) {
  std::vector<std::string> limits;
  for (std::size_t i = 0; i < spec.gpus.size(); ++i)
    limits.push_back(std::to_string(i) + "=" + std::to_string(spec.gpus[i].memory.mebibytes()) +
                     "M");
  return base::Join(limits, ",");
}

}  // namespace penstock::backend::nvidia::mps
