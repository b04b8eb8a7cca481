// Which folders a container's ldconfig would search, by the image's own files (ldconfig(8)). Reads only; what the files say is hostile.
#pragma once

#include <string>
#include <vector>

#include "os/core/confined_tree.h"

namespace penstock::hook {

/// Files below /etc/ld.so.conf.d that are ours: folders to search before the image's own. They are named so that they stand first, the
/// CUDA compatibility libraries before the driver's, and each start of a container replaces them.
inline constexpr char kLdConfig[] = "/etc/ld.so.conf";
inline constexpr char kDropIns[] = "/etc/ld.so.conf.d";
inline constexpr char kCompatDropIn[] = "/etc/ld.so.conf.d/00-penstock-compat.conf";
inline constexpr char kDriverDropIn[] = "/etc/ld.so.conf.d/00-penstock-driver.conf";

struct LdConfigFolder {
  std::string path;  ///< absolute, clean
  std::string file;  ///< that names it; empty: searched by default
};

/// The folders of /etc/ld.so.conf and what it includes but our own files, then those that ldconfig searches by default, in order, each
/// once. A file that cannot be read, or is no regular one, says nothing; so does what is beyond some hundred files and folders and a
/// thousand patterns.
std::vector<LdConfigFolder> ReadLdConfig(const os::ConfinedTree& root);

/// The folders that one such file names, without its includes.
std::vector<std::string> ReadFolders(const os::ConfinedTree& root, const std::string& file);

/// Such a file.
std::string WriteFolders(const std::vector<std::string>& folders);

}  // namespace penstock::hook
