#include "device/telemetry.h"

namespace penstock::device {

BaseUnit BaseOf(Unit unit) {
  switch (unit) {
    case Unit::kPercent: return {"ratio", 0.01};
    case Unit::kRatio: return {"ratio", 1};
    case Unit::kMegahertz: return {"hertz", 1e6};
    case Unit::kCelsius: return {"celsius", 1};
    case Unit::kMilliwatts: return {"watts", 1e-3};
    case Unit::kMillijoules: return {"joules", 1e-3};
    case Unit::kBytes: return {"bytes", 1};
    case Unit::kKibibytes: return {"bytes", 1024};
    case Unit::kMebibytes: return {"bytes", 1048576};
    case Unit::kBytesPerSecond: return {"bytes_per_second", 1};
    case Unit::kNanoseconds: return {"seconds", 1e-9};
    case Unit::kNone: break;
  }
  return {};
}

double ToDouble(const Number& number) {
  const auto* whole = std::get_if<std::uint64_t>(&number);
  return whole != nullptr ? static_cast<double>(*whole) : std::get<double>(number);
}

}  // namespace penstock::device
