// The settings that put one value into one place of a GPU's state, as a table. Those that do more are in settings.cc.
#pragma once

#include <string>
#include <vector>

#include "base/core/result.h"
#include "sim/state.h"

namespace penstock::sim {

/// Their keys.
std::vector<std::string> PlainSettings();

/// Sets one; the caller has settled the meters. kNotFound for a key that is none of these, kInvalidArgument for a value that it cannot
/// take, kFailedPrecondition where the model has no such thing.
base::Status SetPlain(SimGpu& gpu, const std::string& key, const std::string& value);

/// "key=value: wanted".
base::Error BadSetting(const std::string& key, const std::string& value, const std::string& wanted);

/// A number of a setting, from 0 to `most`.
base::Result<std::uint64_t> SettingNumber(const std::string& key, const std::string& value, std::uint64_t most, const std::string& unit);

/// The readings that a fault can replace (SimReading), by the keys of their settings; kInvalidArgument with the keys for any other.
base::Result<SimReading> ReadingOf(const std::string& key);

}  // namespace penstock::sim
