// A bundle's config.json (OCI runtime specification, config.md and config-linux.md 1.0 to 1.3): what we read of it, and what a CDI
// specification's edits do to it. Everything else in it stays as it is, in its order, also what no version of the specification knows.
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
  /// kInvalidArgument where the text is no JSON, or something that we would edit is not of the type that the specification gives it.
  static base::Result<Bundle> Parse(std::string_view text, const std::string& file);

  Bundle(Bundle&&) noexcept;
  Bundle& operator=(Bundle&&) noexcept;
  ~Bundle();

  Facts facts() const;

  /// Takes prestart hooks of NVIDIA's older runtime away, which docker's --gpus and hook folders add, so that nobody acts twice. Whether
  /// there were any.
  bool RemoveStaleHooks();

  /// As container engines apply them (container-device-interface, pkg/cdi/container-edits.go), with two differences: a hook that is there
  /// already is not added again, and each has an environment of its own, since without one it would get the image's (CVE-2025-23266). Bind
  /// mounts are not id-mapped in user namespaces: driver files are readable by all, and file systems that cannot do it would fail the
  /// container. Device files must be complete (host_devices.h).
  void Apply(const api::cdi::Edits& edits);

  std::string ToText() const;

 private:
  struct Tree;
  explicit Bundle(std::unique_ptr<Tree> tree);
  std::unique_ptr<Tree> tree_;
};

}  // namespace penstock::hook::runtime
