// `penstock runtime`: the group of its verbs.
#include "app/penstock/common/verbs.h"
#include "app/penstock/runtime/doctor_verb.h"
#include "app/penstock/runtime/runtime_configure.h"

namespace penstock::app {

command::Verb RuntimeVerb(const Common& common) {
  return {.name = "runtime",
          .summary =
              "Configure container engines, and find what makes devices disappear from "
              "containers",
          .examples =
              "penstock runtime configure --runtime docker\n"
              "penstock runtime unconfigure --all\n"
              "penstock runtime doctor",
          .exit_status = "0 done, 1 failed, or `doctor` found problems, 2 usage error",
          .verbs = {RuntimeConfigureVerb(common), RuntimeUnconfigureVerb(common),
                    RuntimeDoctorVerb(common)}};
}

}  // namespace penstock::app
