// Where penstock-sim's own parts lie: the simulated library, nvidia-smi, machine files. Reads files, writes none.
#pragma once

#include <string>
#include <vector>

#include "base/core/result.h"
#include "sim/machine.h"

namespace penstock::sim {

/// The folders beside a program, the same in a build tree and where it is installed.
struct Assets {
  std::string library_folder;  // lib/penstock-sim: libnvidia-ml.so.1, nvidia-smi
  std::string share_folder;    // share/penstock: machines/, models/
};

/// Those of the running program: `<folder of the program>/../lib/penstock-sim` and `../share/penstock`.
base::Result<Assets> FindAssets();

/// A whole file, at most 4 MiB.
base::Result<std::string> ReadText(const std::string& path);

/// The catalogue of a share folder.
base::Result<Catalogue> LoadCatalogue(const Assets& assets);

/// A machine and the text it was read from.
struct LoadedMachine {
  Machine machine;
  std::string text;
};

/// By name out of the share folder, or from a path (anything with a slash or ending in .yaml). kNotFound lists the names there are.
base::Result<LoadedMachine> LoadMachine(const Assets& assets, const Catalogue& catalogue, const std::string& name_or_path);

/// Names of the machines of the share folder, sorted.
base::Result<std::vector<std::string>> MachineNames(const Assets& assets);

}  // namespace penstock::sim
