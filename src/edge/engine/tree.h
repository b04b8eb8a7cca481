// A configuration's values without its spelling: what two texts are compared by. Knows no format and no engine.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/core/document.h"

namespace penstock::edge::engine {

using Path = std::vector<std::string>;

/// A key that must have a value: a scalar, or a list of scalars.
struct Setting {
  Path path;
  base::Value value;
};

/// Makes values for settings.
base::Value Text(std::string text);
base::Value Flag(bool on);
base::Value Texts(const std::vector<std::string>& texts);

/// A value as JSON spells it: the same text for the same value, whatever file it stood in.
std::string Spell(const base::Value& value);

/// Every key of a document by its path: a map as "{}", anything else as Spell says it. Order does not count.
using Tree = std::map<Path, std::string>;
Tree ToTree(const base::Value& document);

/// Makes a key have a value, with the maps on the way.
void Put(Tree& tree, const Setting& setting);

/// Takes a key away with all below it.
void Take(Tree& tree, const Path& path);

/// A key that differs; empty text: it is not there.
struct Difference {
  Path path;
  std::string before, after;
};

/// Keys whose values differ; maps only where they are empty.
std::vector<Difference> Compare(const Tree& before, const Tree& after);

/// Whether a path is another one or lies below it.
bool IsBelow(const Path& path, const Path& top);

/// The value at a path, or null.
const base::Value* FindAt(const base::Value& document, const Path& path);

/// A path for people: plugins."io.containerd.grpc.v1.cri".enable_cdi
std::string Dotted(const Path& path);

}  // namespace penstock::edge::engine
