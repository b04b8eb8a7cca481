// The command lines of `penstock` and of its kubectl plugin, as data.
#pragma once

#include "app/penstock/common/verbs.h"

namespace penstock::app {

/// Both outlive the parsing. `program` must not be moved: `help` and `completion` describe it.
void DefinePenstock(command::Verb& program, Common& common);
void DefineKubectlPenstock(command::Verb& program, Common& common);

}  // namespace penstock::app
