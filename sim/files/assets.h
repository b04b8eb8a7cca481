// Locates and reads penstock-sim's own parts: the simulated library, nvidia-smi and machine files.
// Writes no files.
#pragma once

#include <string>
#include <vector>

#include "base/core/result.h"
#include "sim/machine.h"

namespace penstock::sim {

/// The folders next to a program, the same in a build tree and in an installation.
struct Assets {
  std::string library_folder;  // lib/penstock-sim: libnvidia-ml.so.1, nvidia-smi
  std::string share_folder;    // share/penstock: machines/, models/
};

/// Returns the folders of the running program: `<folder of the program>/../lib/penstock-sim` and
/// `../share/penstock`.
base::Result<Assets> FindAssets();

/// Reads a whole file of at most 4 MiB.
base::Result<std::string> ReadText(const std::string& path);

/// Reads the catalogue of a share folder.
base::Result<Catalogue> LoadCatalogue(const Assets& assets);

/// A machine and the text of its file.
struct LoadedMachine {
  Machine machine;
  std::string text;
};

/// Loads a machine by name from the share folder, or from a path (any text with a slash or ending
/// in .yaml). kNotFound lists the available names.
base::Result<LoadedMachine> LoadMachine(const Assets& assets, const Catalogue& catalogue,
                                        const std::string& name_or_path);

/// Returns the names of the share folder's machines, sorted.
base::Result<std::vector<std::string>> MachineNames(const Assets& assets);

}  // namespace penstock::sim
