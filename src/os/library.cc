// Wraps dlopen and dlsym. Failures are not cached: the next call tries again.
#include "os/library.h"

#include <utility>

#include <dlfcn.h>
#include <fcntl.h>

#include "base/log.h"
#include "os/process/process.h"

namespace penstock::os {
namespace {

// Whether the loader missed the library itself, not one of its dependencies.
bool IsMissing(const std::string& path, const std::string& message) {
  if (path.find('/') != std::string::npos) return !Exists(path);
  return message.rfind(path + ": cannot open shared object file", 0) == 0;
}

base::Result<void*> Open(const std::string& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  const char* error = ::dlerror();
  const std::string message = error != nullptr ? error : path + ": cannot be loaded";
  return Error(IsMissing(path, message) ? Code::kNotFound : Code::kFailedPrecondition, message);
}

}  // namespace

base::Result<Library> Library::Load(const std::string& path) {
  // dlopen("") would open this program itself.
  if (path.empty()) return Error(Code::kInvalidArgument, "the library has no name");
  ASSIGN(void* handle, Open(path));
  return Library(handle, path, UniqueFd());
}

base::Result<Library> Library::LoadFrom(const Root& root, const std::string& path) {
  ASSIGN(UniqueFd file, root.OpenFile(path, O_RDONLY));
  const std::string name = "/proc/self/fd/" + std::to_string(file.get());
  auto handle = Open(name);
  if (!handle.ok()) {
    const std::string& message = handle.error().message();
    const bool named = message.rfind(name + ": ", 0) == 0;
    return Error(Code::kFailedPrecondition,
                 root.path() + (path.starts_with('/') || root.path().ends_with('/') ? "" : "/") +
                     path + ": " + (named ? message.substr(name.size() + 2) : message));
  }
  return Library(*handle, name, std::move(file));
}

Library::Library(Library&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      name_(std::move(other.name_)),
      file_(std::move(other.file_)) {}

Library& Library::operator=(Library&& other) noexcept {
  if (this == &other) return *this;
  Close();
  handle_ = std::exchange(other.handle_, nullptr);
  name_ = std::move(other.name_);
  file_ = std::move(other.file_);
  return *this;
}

Library::~Library() { Close(); }

void Library::Close() {
  if (handle_ == nullptr) return;
  ::dlclose(std::exchange(handle_, nullptr));
  if (!file_) return;
  // A library may refuse to be unloaded (NODELETE). The loader then still knows it as
  // /proc/self/fd/N, and would return it for any file that is opened as N later, so N must never be
  // closed.
  if (void* still = ::dlopen(name_.c_str(), RTLD_NOW | RTLD_NOLOAD); still != nullptr) {
    ::dlclose(still);
    file_.Release();
  }
  file_.Reset();
}

void* Library::Symbol(const char* name) const {
  return handle_ != nullptr ? ::dlsym(handle_, name) : nullptr;
}

base::Result<std::vector<Library>> LoadBundled(const std::string& file, const std::string& what,
                                               const std::vector<std::string>& replaces) {
  std::vector<Library> libraries;
  for (const char* below : {"/../lib/penstock/", "/../lib/"}) {
    auto library = Library::Load(OwnFolder() + below + file);
    if (library.ok()) {
      libraries.push_back(*std::move(library));
      return libraries;
    }
    if (library.error().code() != Code::kNotFound)
      base::Log(base::kWarn, "the bundled " + what + " cannot be loaded",
                {{"error", library.error().message()}});
  }
  for (const std::string& name : replaces) {
    ASSIGN(auto library, Library::Load(name));
    libraries.push_back(std::move(library));
  }
  return libraries;
}

}  // namespace penstock::os
