// The smallest shared object that the loader takes: a name, what it needs, no code. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penstock::sim {

/// An x86-64 library without a symbol, with its section headers, as dlopen, ldconfig and binutils read it: the fields of elf(5), and
/// PT_GNU_STACK so that no stack becomes executable. `soname` empty: it has none.
std::string SharedObject(std::string_view soname, const std::vector<std::string>& needed);

}  // namespace penstock::sim
