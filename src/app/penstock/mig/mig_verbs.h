// What the verbs of `penstock mig` share: options, texts and files.
#pragma once

#include <string>
#include <vector>

#include "app/penstock/common/verbs.h"
#include "base/core/result.h"

namespace penstock::app {

/// The options that name a layout.
struct GivenLayout {
  std::string file, name;

  void AddTo(std::vector<command::Option>& options);
  base::Status Check() const;
};

/// The text of mig-parted where this program is called by its name.
Shown Worded(const Common& common, Shown shown, const char* text);

/// Replaces a file, or writes to standard output: "-". kInvalidArgument: a link, which another user
/// may have placed there, or a device.
base::Status WriteMigFile(const std::string& file, const std::string& text);

Verb MigApplyVerb(const Common& common);
Verb MigCheckpointVerb(const Common& common);
Verb MigRestoreVerb(const Common& common);

}  // namespace penstock::app
