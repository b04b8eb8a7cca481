#include "node/label/features_file.h"

#include "base/log.h"

namespace penstock::node::label {
namespace {

constexpr std::size_t kMaxNfdFileBytes = 65536;

}  // namespace

std::string FeaturesText(const LabelSet& labels) {
  std::string text;
  for (const auto& [key, value] : labels) {
    if (text.size() + key.size() + value.size() + 2 > kMaxNfdFileBytes) {
      base::Log(base::kWarn, "more labels than NFD reads from a file; the last ones omitted",
                {{"first", key}});
      break;
    }
    text += key + "=" + value + "\n";
  }
  return text;
}

}  // namespace penstock::node::label
