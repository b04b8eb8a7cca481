#include "api/cdi/transform.h"

#include "api/cdi/version.h"

namespace penstock::api::cdi {

namespace {

class Transformer {
 public:
  Transformer(std::string from, std::string to, Relative relative)
      : from_(WithoutSlash(std::move(from))),
        to_(WithoutSlash(std::move(to))),
        relative_(relative) {}

  void Apply(CdiEdits& edits) const {
    for (DeviceNode& node : edits.nodes) ApplyToNode(node);
    for (Hook& hook : edits.hooks) ApplyToHook(hook);
    for (Mount& mount : edits.mounts) {
      std::string& path = relative_ == Relative::kHost ? mount.host_path : mount.container_path;
      path = Moved(path);
    }
  }

 private:
  /// Turns "/" into an empty text, so that every path below a root is the root followed by a path.
  static std::string WithoutSlash(std::string root) {
    while (root.ends_with('/')) root.pop_back();
    return root;
  }

  std::string Moved(const std::string& path) const {
    if (!path.starts_with('/') || !path.starts_with(from_)) return path;
    const std::string rest = path.substr(from_.size());
    if (!rest.empty() && rest.front() != '/') return path;  // /driver is not a parent of /driver2
    const std::string moved = rest == "/" && !to_.empty() ? to_ : to_ + rest;
    return moved.empty() ? "/" : moved;
  }

  std::string MovedArgument(const std::string& argument) const {
    if (const auto colons = argument.find("::"); colons != std::string::npos)
      return MovedArgument(argument.substr(0, colons)) + "::" + Moved(argument.substr(colons + 2));
    if (const auto equals = argument.find('=');
        argument.starts_with("--") && equals != std::string::npos)
      return argument.substr(0, equals + 1) + Moved(argument.substr(equals + 1));
    return Moved(argument);
  }

  void ApplyToNode(DeviceNode& node) const {
    const std::string host = node.host_path.empty() ? node.path : node.host_path;
    if (relative_ == Relative::kHost) {
      node.host_path = Moved(host);
    } else {
      node.host_path = host;
      node.path = Moved(node.path);
    }
    if (node.host_path == node.path) node.host_path.clear();
  }

  void ApplyToHook(Hook& hook) const {
    const bool program_in_container = hook.name == "startContainer";
    const bool runs_in_container = program_in_container || hook.name == "createContainer";
    if (program_in_container == (relative_ == Relative::kContainer)) hook.path = Moved(hook.path);
    if (runs_in_container != (relative_ == Relative::kContainer)) return;
    for (std::string& argument : hook.args) argument = MovedArgument(argument);
  }

  std::string from_, to_;
  Relative relative_;
};

}  // namespace

Spec TransformRoot(Spec spec, const std::string& from, const std::string& to, Relative relative) {
  const Transformer transformer(from, to, relative);
  transformer.Apply(spec.edits);
  for (Device& device : spec.devices) transformer.Apply(device.edits);
  const std::string minimum = MinimumVersion(spec);
  const auto place = internal::PlaceOf(spec.version);
  if (place && *place < *internal::PlaceOf(minimum)) spec.version = minimum;
  return spec;
}

std::set<std::uint32_t> TakeGroups(Spec& spec) {
  std::set<std::uint32_t> taken;
  const auto take = [&taken](CdiEdits& edits) {
    taken.insert(edits.additional_gids.begin(), edits.additional_gids.end());
    edits.additional_gids.clear();
  };
  take(spec.edits);
  for (Device& device : spec.devices) take(device.edits);
  return taken;
}

}  // namespace penstock::api::cdi
