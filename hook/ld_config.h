// Determines which folders a container's ldconfig would search, from the image's own files
// (ldconfig(8)). Reads only; the content of the files may be hostile.
#pragma once

#include <string>
#include <vector>

#include "os/core/confined_tree.h"

namespace penstock::hook {

/// Penstock's files below /etc/ld.so.conf.d: folders to search before the image's own. Their names
/// sort first, with the CUDA compatibility libraries before the driver's. Each start of a container
/// replaces them.
inline constexpr char kLdConfig[] = "/etc/ld.so.conf";
inline constexpr char kDropIns[] = "/etc/ld.so.conf.d";
inline constexpr char kCompatDropIn[] = "/etc/ld.so.conf.d/00-penstock-compat.conf";
inline constexpr char kDriverDropIn[] = "/etc/ld.so.conf.d/00-penstock-driver.conf";

struct LdConfigFolder {
  std::string path;  ///< absolute, clean
  std::string file;  ///< the file that names it; empty: searched by default
};

/// The folders that /etc/ld.so.conf and its includes name, without Penstock's own files, then those
/// that ldconfig searches by default; in order, without duplicates. A file that cannot be read or
/// is not regular adds nothing; nor does anything beyond some hundred files and folders and a
/// thousand patterns.
std::vector<LdConfigFolder> ReadLdConfig(const os::ConfinedTree& root);

/// The folders that one such file names, without its includes.
std::vector<std::string> ReadFolders(const os::ConfinedTree& root, const std::string& file);

/// The content of such a file.
std::string WriteFolders(const std::vector<std::string>& folders);

}  // namespace penstock::hook
