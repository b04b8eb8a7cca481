// Helpers that the tests of this folder share: the parts in the build tree, a temporary folder. For
// tests only.
#pragma once

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/testing/build_tree.h"
#include "sim/control.h"

namespace penstock::sim::testing {

/// A new empty folder, removed with the object.
class Folder {
 public:
  Folder() : path_(::testing::TempDir() + "penstock-sim.XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline Assets BuiltAssets() {
  return {base::BuildPath("lib/penstock-sim"), base::BuildPath("share/penstock")};
}

inline Catalogue BuiltCatalogue() {
  auto catalogue = LoadCatalogue(BuiltAssets());
  EXPECT_TRUE(catalogue.ok()) << catalogue.error().message();
  return *catalogue;
}

inline Machine BuiltMachine(const std::string& name) {
  auto machine = LoadMachine(BuiltAssets(), BuiltCatalogue(), name);
  EXPECT_TRUE(machine.ok()) << machine.error().message();
  return machine->machine;
}

/// Starts a machine of the build tree in `root`.
inline Control Started(const std::string& root, const std::string& name,
                       const Control::StartOptions& options = {}) {
  const auto machine = LoadMachine(BuiltAssets(), BuiltCatalogue(), name);
  EXPECT_TRUE(machine.ok()) << machine.error().message();
  auto control = Control::Start(root, BuiltAssets(), BuiltCatalogue(), *machine, options);
  EXPECT_TRUE(control.ok()) << control.error().message();
  return *std::move(control);
}

/// A machine of the build tree, started in a folder of its own.
struct Running {
  explicit Running(const std::string& name, const Control::StartOptions& options = {})
      : control(Started(root(), name, options)) {}

  std::string root() const { return folder / "m"; }
  std::string operator/(const std::string& below) const { return root() + "/" + below; }

  Folder folder;
  Control control;
};

}  // namespace penstock::sim::testing
