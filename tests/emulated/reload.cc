// Loads amdgpu again as the agent does for memory modes, and prints what came of it. Status 0: it
// was loaded again; 1: it was not.
#include <iostream>

#include "backend/all.h"
#include "os/loop.h"

int main() {
  using namespace penstock;
  os::Loop loop("reload");
  const auto actions = backend::MakeActions("amd", loop, {});
  base::Status outcome;
  actions->ReloadDriver([&](const base::Status& status) {
    outcome = status;
    loop.Stop();
  });
  loop.Run();
  std::cout << (outcome.ok() ? "loaded again" : outcome.error().message()) << "\n";
  return outcome.ok() ? 0 : 1;
}
