// What a container needs of a vendor's driver besides device files, as tables of a dialect: the
// names to look for, not the paths found. Pure data; node/cdi finds the files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::device {

/// Files of a driver that a container gets. "{version}" in a pattern stands for the driver's
/// version; file names may be globs.
struct DriverFile {
  enum class Kind {
    kLibrary,  ///< a path below one of the library folders: "libcuda.so.{version}",
               ///< "vdpau/libvdpau_nvidia.so.{version}"
    kModule,  ///< the same for a library that a program loads by path, so that ld.so.cache does not
              ///< list it: "xorg/modules/drivers/nvidia_drv.so"
    kProgram,        ///< a file name, looked up in the folders of PATH
    kConfiguration,  ///< a path below one of the configuration folders; `folder` is its folder in
                     ///< the container
    kFirmware,       ///< a path below the kernel's firmware folders
    kSocket,  ///< an absolute path of a socket or a folder of sockets; mounted writable, since
              ///< programs talk through it
  };
  Kind kind = Kind::kLibrary;
  std::string pattern;
  std::string capability;  ///< the part of the driver that it belongs to ("compute", "utility",
                           ///< "graphics"), to report what is missing
  bool expected = false;   ///< a complete driver has it: its absence is worth a remark
  std::string folder;
};

/// A link that containers expect beside a library although no library's SONAME asks for it:
/// "libcuda.so" → "libcuda.so.1".
struct DriverLink {
  std::string link;    ///< file name, or a path relative to the library's folder
  std::string target;  ///< file name or SONAME of a library; the link is made if this library
                       ///< exists
};

/// A step to run inside each container as it starts.
struct ContainerHook {
  std::string name;  ///< of the hook program: "update-ldcache"
  std::vector<std::string>
      arguments;  ///< in addition to those that follow from the files found; "{version}" as above
  bool by_default = true;  ///< false: only on request
};

/// A device file that all containers of a vendor's devices share.
struct ControlFile {
  std::string path;       ///< "/dev/nvidia-uvm"
  bool required = false;  ///< without it nothing works
  std::string remedy;     ///< the command that creates it: "nvidia-modprobe -c 0 -u"
};

/// Everything that a container needs of one driver.
struct ContainerDriver {
  std::vector<std::string> version_libraries;  ///< their suffix is the version if no other source
                                               ///< reports it: "libcuda.so"
  std::vector<std::string>
      library_folders;                     ///< searched in this order, before those of ld.so.cache
  std::vector<std::string> own_libraries;  ///< globs: a needed library whose name matches comes
                                           ///< from the driver, any other from the image
  std::vector<DriverFile> files;
  std::vector<DriverLink> links;
  std::vector<ControlFile> control_files;  ///< in addition to those that the driver reports
  std::vector<ContainerHook> hooks;        ///< in the order in which they run
  std::vector<std::string> hook_environment;
  std::string subcommand_program;        ///< a hook program of this name has the hooks below its
                                         ///< subcommand "hook"
  std::vector<std::string> environment;  ///< "NAME=value" for every container; "{folders}" stands
                                         ///< for the library folders, joined by ":"
  std::string narrow_kind;  ///< CDI kind of the class of 32-bit libraries: "nvidia.com/compat32"
};

/// What a line in a list of host files names.
enum class HostFile { kDevice, kFolder, kFile, kLink };

/// How devices are named in a CDI specification.
enum class CdiNames { kIndex, kUuid, kTypeIndex };

/// A class of devices that are not the vendor's accelerators but belong to them:
/// "nvidia.com/gds=all".
struct CdiClass {
  std::string mode;  ///< "gds", as in `penstock cdi generate --mode`
  std::string kind;  ///< "nvidia.com/gds"
  std::vector<std::string>
      nodes;  ///< globs over device files; if none exists, this machine does not have the class
  std::vector<std::string> nodes_too;  ///< added to them if they exist
  std::vector<std::string> mounts;     ///< absolute paths, mounted if they exist
  bool device_per_node =
      false;  ///< one device per node, named by its number (IMEX channels), and no "all"
  std::uint64_t highest = UINT64_MAX;  ///< the highest of these numbers
  std::vector<std::string> except;     ///< globs over device files to leave out

  /// A file whose text names the devices, each with its device file, instead of `nodes`; empty: no
  /// such file.
  std::string list;
  base::Result<std::map<std::string, std::string>> (*named)(std::string_view list) = nullptr;

  bool with_driver = false;  ///< its containers get the driver's files, as containers with
                             ///< accelerators do
  std::vector<std::string> without_hooks;  ///< except for these hooks
};

/// A kind of machine that has one device and on which the driver's files are not in their usual
/// places. What a container needs is in lists that are part of the system, or in folders that the
/// system mounts.
struct CdiPlatform {
  std::string mode;  ///< "csv", as in `penstock cdi generate --mode`
  std::string name;  ///< "Tegra", for people

  std::vector<std::string> signs;  ///< absolute paths; any one of them identifies a machine of this
                                   ///< kind
  std::string sign_file, sign_text;  ///< or a file that begins with this text, ignoring case
  std::string unless_library;        ///< not if the driver has this library,
  std::vector<std::string>
      if_models;  ///< unless all devices that it reports are of these models (globs)

  bool numbered = false;  ///< the device is named like one with index 0; otherwise only "all"
  std::vector<std::string> nodes;         ///< its device files, absolute paths
  std::vector<std::string> mounts;        ///< absolute paths, mounted if they exist
  std::vector<std::string> lists;         ///< files with lines "KEYWORD, PATH", read if they exist
  std::map<std::string, HostFile> words;  ///< what the keywords mean

  /// A folder some files of which are mounted.
  struct Folder {
    std::string pattern;   ///< absolute path, a glob
    std::string known_by;  ///< a file that identifies the right folder among those that match; the
                           ///< newest if several have it
    std::vector<std::string> files;      ///< file names; missing ones are reported
    std::vector<std::string> files_too;  ///< globs over file names
  };
  std::vector<Folder> folders;
  std::vector<DriverLink>
      links;  ///< beside the file that they point to; an absolute path is used as it is
};

}  // namespace penstock::device
