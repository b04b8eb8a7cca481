// A driver root's own etc/ld.so.cache, as ldconfig of today writes it (glibc, sysdeps/generic/dl-cache.h). Pure.
#pragma once

#include <map>
#include <string>

namespace penstock::sim {

/// The cache of x86-64 libraries, name to path, in the order that ld.so searches by.
std::string LoaderCache(const std::map<std::string, std::string>& libraries);

}  // namespace penstock::sim
