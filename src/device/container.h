// What a container needs of a vendor's driver besides device files, as a dialect's tables say it: names to look for, never where they
// turned out to lie. Pure data; node/cdi looks for it.
#pragma once

#include <string>
#include <vector>

namespace penstock::device {

/// Files of a driver that a container sees. "{version}" in a pattern stands for the driver's version; patterns are globs.
struct DriverFile {
  enum class Kind {
    kLibrary,        ///< a file name, looked for in the library folders and in the driver root's ld.so.cache
    kProgram,        ///< a file name, looked for in the folders of PATH
    kConfiguration,  ///< a path below one of the configuration folders, which it keeps in the container
    kFirmware,       ///< a path below the kernel's firmware folders
    kSocket,         ///< a whole path; given writable, since programs talk through it
    kFile,           ///< a whole path
  };
  Kind kind = Kind::kLibrary;
  std::string pattern;
  std::string capability;  ///< which part of the driver it belongs to ("compute", "utility", "graphics"); empty: every container has it
  bool wide = true;        ///< false: of the set for 32-bit programs
};

/// A link that containers expect beside a library although no library's SONAME says so: "libcuda.so" → "libcuda.so.1".
struct DriverLink {
  std::string link;    ///< file name, or a path relative to the library's folder
  std::string target;  ///< as the link says it; the link is made where this exists
};

/// A step that has to be done inside each container as it starts.
struct ContainerHook {
  std::string name;                    ///< of the hook program: "update-ldcache"
  std::vector<std::string> arguments;  ///< beyond those that follow from the files found
};

/// All of it.
struct ContainerDriver {
  std::vector<std::string> version_libraries;  ///< whose suffix is the version where nobody else says it: "libcuda.so"
  std::vector<std::string> library_folders;    ///< searched in this order, before ld.so.cache
  std::vector<DriverFile> files;
  std::vector<DriverLink> links;
  std::vector<ContainerHook> hooks;
  std::vector<std::string> environment;  ///< "NAME=value" of every container
};

/// How devices are named in a CDI specification.
enum class CdiNames { kIndex, kUuid, kTypeIndex };

/// A class of devices that are not the vendor's accelerators and come with them: "nvidia.com/gds=all".
struct CdiClass {
  std::string mode;                    ///< "gds", as people say it to `penstock cdi generate --mode`
  std::string kind;                    ///< "nvidia.com/gds"
  std::vector<std::string> nodes;      ///< globs over device files; without any of them there is no such class here
  std::vector<std::string> nodes_too;  ///< given with them where they are
  std::vector<std::string> mounts;     ///< whole paths, where they are
  bool device_per_node = false;        ///< one device for each node, named by its number (IMEX channels), and no "all"
  std::vector<std::string> except;     ///< globs over device files that are left out
};

}  // namespace penstock::device
