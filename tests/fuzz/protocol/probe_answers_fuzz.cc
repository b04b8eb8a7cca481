// Fuzzes what comes back from the container in which the agent tries its devices: whatever it says,
// there is at most one reason for each file that was asked for, and none for another.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../oracle.h"
#include "node/validate/container_files.h"

namespace {

using penstock::fuzz::Require;
using penstock::node::validate::PromisedFiles;
using penstock::node::validate::WhatOpened;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const PromisedFiles promised{
      {{"/dev/acme0", true}, {"/dev/acmectl", true}, {"/lib/libacme.so", false}}};
  const std::string_view text = penstock::fuzz::Text(data, size);
  const auto some = WhatOpened(promised, text);
  Require(!some.ok() || some->why_not.size() + some->unserved.size() <= promised.files.size());
  for (const std::string& reason : some.ok() ? some->why_not : std::vector<std::string>())
    Require(std::ranges::any_of(promised.paths(), [&](const std::string& path) {
      return reason.starts_with(path + " ") && reason.size() < 200;
    }));
  std::string opened(text);
  for (const std::string& path : promised.paths()) opened += "\n0 " + path;
  const auto all = WhatOpened(promised, opened);
  Require(all.ok() && all->why_not.empty() && all->unserved.empty());
  return 0;
}
