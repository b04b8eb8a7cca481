#include "acme/machine.h"

#include <cerrno>
#include <cstdio>

#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/file.h"

namespace penstock::backend::acme {
namespace {

base::Result<Lines> Read(const std::string& path) {
  ASSIGN(const std::string text, os::ReadFile(path));
  Lines lines;
  for (const std::string& line : base::Split(text, '\n'))
    if (const auto equals = line.find('='); equals != std::string::npos)
      lines.emplace(line.substr(0, equals), line.substr(equals + 1));
  return lines;
}

}  // namespace

std::string Text(const Lines& lines, const std::string& key) {
  const auto found = lines.find(key);
  return found == lines.end() ? "" : found->second;
}

std::int64_t Number(const Lines& lines, const std::string& key, std::int64_t otherwise) {
  return base::ParseInt(Text(lines, key)).value_or(otherwise);
}

std::vector<std::vector<std::string>> All(const Lines& lines, const std::string& key) {
  std::vector<std::vector<std::string>> all;
  const auto [first, last] = lines.equal_range(key);
  for (auto line = first; line != last; ++line) all.push_back(base::Split(line->second, ' '));
  return all;
}

std::int64_t NumberAt(const std::vector<std::string>& words, std::size_t position) {
  return position < words.size() ? base::ParseInt(words[position]).value_or(0) : 0;
}

Machine::Machine(std::string driver_root)
    : folder_((driver_root == "/" ? "" : std::move(driver_root)) + "/acme") {}

base::Result<std::string> Machine::Version() const {
  const auto lines = Read(driver_file());
  if (!lines.ok())
    return base::Error(base::Code::kNotFound, "there is no Acme driver at " + driver_file() +
                                                  ": install it, or pass --driver-root");
  return Text(*lines, "version");
}

base::Result<std::vector<std::string>> Machine::Addresses() const {
  TRY(Version());
  return os::ListDirectory(devices_folder());
}

base::Result<Lines> Machine::Device(const std::string& address) const {
  return Read(devices_folder() + "/" + address);
}

base::Result<Lines> Machine::Division(const std::string& address) const {
  auto lines = Read(divided_folder() + "/" + address);
  return !lines.ok() && lines.error().code() == base::Code::kNotFound ? Lines{} : lines;
}

base::Status Machine::SetDivision(const std::string& address, const Lines& lines) const {
  TRY(os::MakeDirectories(divided_folder()));
  return Write(divided_folder() + "/" + address, lines);
}

base::Status Machine::Cure(const std::string& id) const {
  ASSIGN(const auto addresses, Addresses());
  for (const std::string& address : addresses) {
    ASSIGN(Lines lines, Device(address));
    if (Text(lines, "id") != id) continue;
    lines.erase("fault");
    return Write(devices_folder() + "/" + address, lines);
  }
  return base::Error(base::Code::kNotFound, "there is no device " + id);
}

/// By way of a file outside the folders, in which each file is one device: a process that is killed
/// here would leave a device that cannot be read.
base::Status Machine::Write(const std::string& file, const Lines& lines) const {
  std::string text;
  for (const auto& [key, value] : lines) text += key + "=" + value + "\n";
  const std::string beside = folder_ + "/written-" + std::to_string(::getpid());
  TRY(os::WriteFileAtomically(beside, text));
  if (std::rename(beside.c_str(), file.c_str()) != 0)
    return base::ErrnoError(errno, "replace " + file);
  return {};
}

}  // namespace penstock::backend::acme
