// The command lines of `penstock`, of its kubectl plugin and of `nvidia-mig-parted`, as data.
#pragma once

#include "app/penstock/common/verbs.h"

namespace penstock::app {

/// Both arguments outlive the parsing. `program` must not be moved: `help` and `completion`
/// describe it.
void DefinePenstock(command::Verb& program, Common& common);
void DefineKubectlPenstock(command::Verb& program, Common& common);
void DefineMigParted(command::Verb& program, Common& common);

}  // namespace penstock::app
