// Holds a configuration's values without their spelling, so that two texts can be compared.
// Independent of formats and engines.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/core/document.h"

namespace penstock::protocol::engine {

using Path = std::vector<std::string>;

/// A key with its required value: a scalar, or a list of scalars.
struct Setting {
  Path path;
  base::Value value;
};

/// Makes values for settings.
base::Value Text(std::string text);
base::Value Flag(bool on);
base::Value Texts(const std::vector<std::string>& texts);

/// Returns a value as JSON spells it: the same text for the same value, whatever format it was read
/// from.
std::string Spell(const base::Value& value);

/// All keys of a document by path: a map as "{}", any other value as returned by Spell. Order does
/// not count.
using Tree = std::map<Path, std::string>;
Tree ToTree(const base::Value& document);

/// Sets a key's value and creates the maps in its path.
void Put(Tree& tree, const Setting& setting);

/// Removes a key with everything below it.
void Take(Tree& tree, const Path& path);

/// A key that differs; an empty text means that the key is absent.
struct Difference {
  Path path;
  std::string before, after;
};

/// Returns the keys whose values differ; maps only if they are empty.
std::vector<Difference> Compare(const Tree& before, const Tree& after);

/// Returns whether a path equals `top` or is below it.
bool IsBelow(const Path& path, const Path& top);

/// Returns the value at a path, or null.
const base::Value* FindAt(const base::Value& document, const Path& path);

/// Formats a path for people: plugins."io.containerd.grpc.v1.cri".enable_cdi
std::string Dotted(const Path& path);

}  // namespace penstock::protocol::engine
