// Reads the containers of pod specifications leniently: fields that are missing or of another type
// read as empty.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/objects.h"

namespace penstock::analysis {

/// The items of a list; empty where there is no list.
const Json& Items(const Json& object, std::initializer_list<std::string_view> path);

/// The container's command and arguments.
std::vector<std::string> Words(const Json& container);

/// The name of the program in the first word, without its folder.
std::string Program(const Json& container);

/// "nvcr.io/nvidia/k8s-device-plugin:v0.17.1" → "k8s-device-plugin".
std::string ImageName(const Json& container);

/// The value of a variable in the container's own environment, where it is plain text.
std::string EnvironmentOf(const Json& container, std::string_view name);

}  // namespace penstock::analysis
