#include "node/cdi/modes_list.h"

#include <algorithm>

#include "base/core/strings.h"

namespace penstock::node::cdi {
namespace {

/// Linux' PATH_MAX, which includes the terminating zero.
constexpr std::size_t kLongestPath = 4095;

std::string WhyNoPath(std::string_view path) {
  if (!path.starts_with('/')) return "an absolute path is expected after the comma";
  if (path.size() > kLongestPath) return "the path is too long";
  const auto control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; };
  if (!base::IsUtf8(path) || std::ranges::any_of(path, control))
    return "the path contains control characters or is not UTF-8";
  for (const std::string& part : base::Split(path, '/'))
    if (part == "." || part == "..") return "the path must not contain \".\" or \"..\"";
  // Hooks take links as TARGET::LINK.
  if (path.find("::") != std::string_view::npos)
    return "the path contains \"::\", which a specification cannot express";
  return "";
}

/// "//usr//lib/" → "/usr/lib".
std::string Plain(std::string_view path) {
  std::string plain;
  for (const std::string& part : base::Split(path, '/'))
    if (!part.empty()) plain += "/" + part;
  return plain;
}

std::string Words(const std::map<std::string, device::HostFile>& words) {
  std::vector<std::string> names;
  for (const auto& [name, kind] : words) names.push_back(name);
  return base::Join(names, ", ");
}

}  // namespace

base::Result<std::vector<ListedFile>> ParseFileList(
    std::string_view text, std::string_view file,
    const std::map<std::string, device::HostFile>& words) {
  std::vector<ListedFile> files;
  std::vector<std::string> problems;
  std::size_t number = 0;
  const auto wrong = [&](const std::string& problem) {
    problems.push_back(std::string(file) + ":" + std::to_string(number) + ": " + problem);
  };
  for (const std::string& whole : base::Split(text, '\n')) {
    ++number;
    const std::string_view line = base::Trim(whole);
    if (line.empty() || line.starts_with('#')) continue;
    const auto comma = line.find(',');
    const auto word = words.find(std::string(base::Trim(line.substr(0, comma))));
    if (comma == std::string_view::npos) {
      wrong("a line \"WORD, PATH\" is expected");
    } else if (word == words.end()) {
      wrong("the line must begin with one of " + Words(words));
    } else if (const std::string_view path = base::Trim(line.substr(comma + 1));
               !WhyNoPath(path).empty()) {
      wrong(WhyNoPath(path));
    } else if (std::string plain = Plain(path); plain.empty()) {
      wrong("a path below / is expected");
    } else if (plain.ends_with(' ')) {
      wrong("the path ends with a space");
    } else {
      files.push_back({word->second, std::move(plain)});
    }
  }
  if (!problems.empty())
    return base::Error(base::Code::kInvalidArgument, base::Join(problems, "\n"));
  return files;
}

}  // namespace penstock::node::cdi
