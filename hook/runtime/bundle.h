// Reads and edits a bundle's config.json (OCI runtime specification, config.md and config-linux.md
// 1.0 to 1.3): extracts the facts that this program needs, and applies a CDI specification's edits.
// Everything else is preserved in its order, including keys that no version of the specification
// defines.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/cdi/spec.h"
#include "base/core/result.h"
#include "hook/runtime/facts.h"

namespace penstock::hook::runtime {

class Bundle {
 public:
  /// kInvalidArgument if the text is not JSON, or if a part that would be edited does not have the
  /// type that the specification gives it.
  static base::Result<Bundle> Parse(std::string_view text, const std::string& file);

  Bundle(Bundle&&) noexcept;
  Bundle& operator=(Bundle&&) noexcept;
  ~Bundle();

  RuntimeFacts facts() const;

  /// Removes prestart hooks of NVIDIA's older runtime, which docker's --gpus and hook folders add,
  /// so that devices are not injected twice. Returns whether there were any.
  bool RemoveStaleHooks();

  /// Applies edits as container engines do (container-device-interface,
  /// pkg/cdi/container-edits.go), with two differences. A hook that is already present is not added
  /// again. Each hook gets an environment of its own, since without one it would get the image's
  /// (CVE-2025-23266). Bind mounts are not id-mapped in user namespaces: driver files are readable
  /// by all, and file systems without id-mapping support would fail the container. Device files
  /// must be complete (host_devices.h).
  void Apply(const api::cdi::CdiEdits& edits);

  std::string ToText() const;

 private:
  struct Tree;
  explicit Bundle(std::unique_ptr<Tree> tree);
  std::unique_ptr<Tree> tree_;
};

}  // namespace penstock::hook::runtime
