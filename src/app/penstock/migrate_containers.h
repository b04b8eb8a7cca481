// Reading containers of pods as people write them: what is missing or of another type is empty.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/penstock/cluster.h"

namespace penstock::app {

/// Items of a list; nothing where it is none.
const Json& Items(const Json& object, std::initializer_list<std::string_view> path);

/// Command and arguments.
std::vector<std::string> Words(const Json& container);

/// The name of the first of them, without its folder.
std::string Program(const Json& container);

/// "nvcr.io/nvidia/k8s-device-plugin:v0.17.1" → "k8s-device-plugin".
std::string ImageName(const Json& container);

/// What its own environment says in plain text.
std::string EnvironmentOf(const Json& container, std::string_view name);

}  // namespace penstock::app
