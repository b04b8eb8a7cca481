// Reads the state of a policy from its status, which any operator may have written. Pure.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace penstock::api::compat {

/// The reason of the condition Ready of a policy that has no effect.
inline constexpr std::string_view kIgnored = "Ignored";

/// "ready", "notReady" or "ignored", or what else the status has as its state; empty: no operator
/// has reported. Where the definition has no state, as AMD's, it follows from the condition Ready.
std::string StateOfPolicy(const nlohmann::json& object);

}  // namespace penstock::api::compat
