// What a container needs of a vendor's driver besides device files, as a dialect's tables say it: names to look for, never where they
// turned out to lie. Pure data; node/cdi looks for it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::device {

/// Files of a driver that a container sees. "{version}" in a pattern stands for the driver's version; file names may be globs.
struct DriverFile {
  enum class Kind {
    kLibrary,  ///< a path below one of the library folders: "libcuda.so.{version}", "vdpau/libvdpau_nvidia.so.{version}"
    kModule,   ///< likewise, of a program that loads it by path, so that it is in no ld.so.cache: "xorg/modules/drivers/nvidia_drv.so"
    kProgram,  ///< a file name, looked for in the folders of PATH
    kConfiguration,  ///< a path below one of the configuration folders; `folder` is where containers have it
    kFirmware,       ///< a path below the kernel's firmware folders
    kSocket,         ///< a whole path, a socket or a folder of sockets; given writable, since programs talk through it
  };
  Kind kind = Kind::kLibrary;
  std::string pattern;
  std::string capability;  ///< which part of the driver it belongs to ("compute", "utility", "graphics"), to say what is missing
  bool expected = false;   ///< a complete driver has it: that it is missing is worth a remark
  std::string folder;
};

/// A link that containers expect beside a library although no library's SONAME says so: "libcuda.so" → "libcuda.so.1".
struct DriverLink {
  std::string link;    ///< file name, or a path relative to the library's folder
  std::string target;  ///< file name or SONAME of a library; the link is made where this exists
};

/// A step that has to be done inside each container as it starts.
struct ContainerHook {
  std::string name;                    ///< of the hook program: "update-ldcache"
  std::vector<std::string> arguments;  ///< beyond those that follow from the files found; "{version}" as above
  bool by_default = true;              ///< false: where somebody asks for it
};

/// A device file that all containers of a vendor's devices share.
struct ControlFile {
  std::string path;       ///< "/dev/nvidia-uvm"
  bool required = false;  ///< nothing works without it
  std::string remedy;     ///< what makes it: "nvidia-modprobe -c 0 -u"
};

/// All of it.
struct ContainerDriver {
  std::vector<std::string> version_libraries;  ///< whose suffix is the version where nobody else says it: "libcuda.so"
  std::vector<std::string> library_folders;    ///< searched in this order, before those of ld.so.cache
  std::vector<std::string> own_libraries;      ///< globs: a needed library of such a name is the driver's, any other is the image's
  std::vector<DriverFile> files;
  std::vector<DriverLink> links;
  std::vector<ControlFile> control_files;  ///< in addition to those that the driver says
  std::vector<ContainerHook> hooks;        ///< in the order in which they are done
  std::vector<std::string> hook_environment;
  std::vector<std::string> environment;  ///< "NAME=value" of every container; "{folders}": those of the libraries, joined by ":"
  std::string narrow_kind;               ///< of the class of libraries for 32-bit programs: "nvidia.com/compat32"
};

/// What a line in a list of host files is.
enum class HostFile { kDevice, kFolder, kFile, kLink };

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
  std::uint64_t highest = UINT64_MAX;  ///< of these numbers
  std::vector<std::string> except;     ///< globs over device files that are left out

  /// A file whose text names the devices, each with its device file, instead of `nodes`; empty: there is none.
  std::string list;
  base::Result<std::map<std::string, std::string>> (*named)(std::string_view list) = nullptr;

  bool with_driver = false;                ///< its containers get the driver's files as those of accelerators do
  std::vector<std::string> without_hooks;  ///< but for these steps
};

/// A kind of machine on which files do not lie where the vendor's driver has them else, and on which there is one device: what a container
/// needs is said by lists that are part of the system, or lies in folders that the system mounts.
struct CdiPlatform {
  std::string mode;  ///< "csv", as people say it to `penstock cdi generate --mode`
  std::string name;  ///< "Tegra", for people

  std::vector<std::string> signs;      ///< whole paths, any of which tells a machine of this kind
  std::string sign_file, sign_text;    ///< or a file that begins so, in upper or lower case
  std::string unless_library;          ///< not where the driver has this library,
  std::vector<std::string> if_models;  ///< unless all devices that it tells of are of these models (globs)

  bool numbered = false;                  ///< the device is called as one with index 0 is; else "all" and nothing more
  std::vector<std::string> nodes;         ///< its device files, whole paths
  std::vector<std::string> mounts;        ///< whole paths, where they are
  std::vector<std::string> lists;         ///< files with lines "KEYWORD, PATH", where they are
  std::map<std::string, HostFile> words;  ///< what their keywords mean

  /// A folder of which files are given.
  struct Folder {
    std::string pattern;                 ///< whole path, a glob
    std::string known_by;                ///< a file in it that tells which of those that match is meant; the newest, if there are several
    std::vector<std::string> files;      ///< names; what is missing is told
    std::vector<std::string> files_too;  ///< globs over names
  };
  std::vector<Folder> folders;
  std::vector<DriverLink> links;  ///< beside the file that they lead to; a whole path where it is one
};

}  // namespace penstock::device
