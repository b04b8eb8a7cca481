// Which configuration of a ConfigMap a node is to have: the key that its label names, else the default, else a fall-back. Reads no
// configuration. Pure.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "api/node_config.h"
#include "door/cluster.h"

namespace penstock::door {

/// "ConfigMap gpu-operator/time-slicing-config".
std::string NameOf(const api::ConfigMapConfig& where);

/// `label`: the value of the node's label, empty where it has none (an empty value names no key either). `config_map`: null where there is
/// no such ConfigMap. What cannot be had is a problem that says what to do; then what is in force stays.
WishedConfig ChooseConfig(const api::ConfigMapConfig& where, const std::string& label, const nlohmann::json* config_map);

}  // namespace penstock::door
