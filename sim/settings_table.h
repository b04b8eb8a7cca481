// The settings that write one value to one place of a GPU's state, as a table. Settings with
// further effects are in settings.cc.
#pragma once

#include <string>
#include <vector>

#include "base/core/result.h"
#include "sim/state.h"

namespace penstock::sim {

/// Returns the keys of these settings.
std::vector<std::string> PlainSettings();

/// Applies one setting; the caller has settled the meters. Returns kNotFound for an unknown key,
/// kInvalidArgument for an invalid value, kFailedPrecondition if the model lacks the feature.
base::Status SetPlain(SimGpu& gpu, const std::string& key, const std::string& value);

/// Returns the error "key=value: wanted".
base::Error BadSetting(const std::string& key, const std::string& value, const std::string& wanted);

/// Reads the number of a setting, from 0 to `most`.
base::Result<std::uint64_t> SettingNumber(const std::string& key, const std::string& value,
                                          std::uint64_t most, const std::string& unit);

/// Returns the reading that a fault can replace (SimReading), by the key of its setting;
/// kInvalidArgument lists the keys.
base::Result<SimReading> ReadingOf(const std::string& key);

}  // namespace penstock::sim
