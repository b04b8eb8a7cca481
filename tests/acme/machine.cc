#include "acme/machine.h"

#include <cerrno>
#include <cstdio>

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

Machine::Machine(std::string driver_root)
    : folder_((driver_root == "/" ? "" : std::move(driver_root)) + "/acme") {}

base::Result<std::string> Machine::Version() const {
  const auto lines = Read(driver_file());
  if (!lines.ok())
    return base::Error(base::Code::kNotFound, "there is no Acme driver at " + driver_file() +
                                                  ": install it, or pass --driver-root");
  const auto version = lines->find("version");
  return version == lines->end() ? "" : version->second;
}

base::Result<std::vector<std::string>> Machine::Addresses() const {
  TRY(Version());
  return os::ListDirectory(devices_folder());
}

base::Result<Lines> Machine::Device(const std::string& address) const {
  return Read(devices_folder() + "/" + address);
}

base::Status Machine::Cure(const std::string& id) const {
  ASSIGN(const auto addresses, Addresses());
  for (const std::string& address : addresses) {
    ASSIGN(const Lines lines, Device(address));
    if (const auto known = lines.find("id"); known == lines.end() || known->second != id) continue;
    std::string text;
    for (const auto& [key, value] : lines)
      if (key != "fault") text += key + "=" + value + "\n";
    // Outside the folder of devices, where each file is one: an agent that is killed here would
    // leave a device that cannot be read.
    const std::string beside = folder_ + "/cured";
    TRY(os::WriteFileAtomically(beside, text));
    if (std::rename(beside.c_str(), (devices_folder() + "/" + address).c_str()) != 0)
      return base::ErrnoError(errno, "replace the file of " + id);
    return {};
  }
  return base::Error(base::Code::kNotFound, "there is no device " + id);
}

}  // namespace penstock::backend::acme
