// Translates the configuration file of NVIDIA's mig-parted (version v1) into layouts, and back.
// Pure.
//
// As mig-parted, it refuses unknown keys and values of the wrong type (api/spec/v1/spec.go). It
// also refuses what mig-parted reads and then ignores or cannot apply: duplicate keys, filters that
// are no PCI ids, negative indices.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "api/config/layouts.h"
#include "base/core/result.h"

namespace penstock::api::compat {

/// The canonical name of a profile; an error that says what is wrong with it.
using ProfileNameReader = std::function<Result<std::string>(std::string_view name)>;

/// kInvalidArgument: all problems, each with file:line:column, key and remedy. An empty text has no
/// layouts.
Result<Layouts> TranslateMigParted(std::string_view text, std::string_view file,
                                   const ProfileNameReader& read_profile);

/// Whether a text is meant as such a file: it has the key mig-configs at the top.
bool LooksLikeMigParted(std::string_view text);

/// The JSON of such a file.
std::string WriteMigParted(const Layouts& layouts);

/// "0x233010DE:0x146410DE"; kInvalidArgument: what else it has to be.
Result<PciModel> ParsePciModel(std::string_view text);
std::string ToString(const PciModel& model);

}  // namespace penstock::api::compat
