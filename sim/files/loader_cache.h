// Writes a driver root's etc/ld.so.cache in the format of current ldconfig (glibc,
// sysdeps/generic/dl-cache.h). Pure.
#pragma once

#include <map>
#include <string>

namespace penstock::sim {

/// Returns the cache of x86-64 libraries, from name to path, in the order in which ld.so searches.
std::string LoaderCache(const std::map<std::string, std::string>& libraries);

}  // namespace penstock::sim
