// The files of the page at /, which are in the program: the build embeds the folder page/.
#pragma once

#include <span>
#include <string_view>

namespace penstock::adapter::pages {

struct PageFile {
  std::string_view name;  ///< "page.js"
  std::string_view content;
};

std::span<const PageFile> PageFiles();

/// Changes with every file. In index.html, "@BUILD@" stands for it.
std::string_view PageFilesHash();

}  // namespace penstock::adapter::pages
