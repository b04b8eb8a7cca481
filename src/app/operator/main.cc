// penstock-operator: parses the command line and runs the operator.
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include <malloc.h>

#include "app/command/parse.h"
#include "app/operator/command_line.h"
#include "app/operator/operator_program.h"
#include "base/log.h"

namespace penstock::app {
namespace {

int Start(const OperatorCommandLine& line) {
  base::StartLog("penstock-operator", line.verbose ? base::kDebug : base::kInfo);
  return RunOperator(line);
}

int Main(int argc, char** argv) {
  OperatorCommandLine line;
  command::Output unused;
  command::Verb program = OperatorCommand(line);
  program.check = [&line]() -> Status {
    if (!line.agent_image.empty()) return {};
    return Error(Code::kInvalidArgument,
                 "--agent-image (or PENSTOCK_IMAGE) is missing: the image of the agents, usually "
                 "this operator's own");
  };
  program.run = [&line] { return Start(line); };
  return command::Run(program, std::vector<std::string>(argv + std::min(argc, 1), argv + argc),
                      unused);
}

}  // namespace
}  // namespace penstock::app

int main(int argc, char** argv) {
  ::mallopt(M_ARENA_MAX, 1);
  // Objects of some hundred KiB come and go: outside the heap they leave no holes in it.
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);
  return penstock::app::Main(argc, argv);
}
