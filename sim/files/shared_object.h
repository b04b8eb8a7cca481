// Builds the smallest shared object that the loader accepts: a name, its dependencies, no code.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penstock::sim {

/// Returns an x86-64 library without symbols, with section headers, as dlopen, ldconfig and
/// binutils read it: the fields of elf(5), and PT_GNU_STACK so that no stack becomes executable.
/// `soname` empty: none.
std::string SharedObject(std::string_view soname, const std::vector<std::string>& needed);

}  // namespace penstock::sim
