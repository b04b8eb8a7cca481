#include "device/backend.h"

namespace penstock::device {
namespace {

base::Error CannotChange() {
  return {base::Code::kUnimplemented, "this driver's devices cannot be divided"};
}

}  // namespace

base::Status Backend::SetMode(const std::string&, const std::string&, const std::string&) {
  return CannotChange();
}

base::Result<std::string> Backend::CreatePart(const std::string&, const NewPart&) {
  return CannotChange();
}

base::Status Backend::DestroyPart(const std::string&) { return CannotChange(); }

void AsyncBackend::SetMode(const std::string&, const std::string&, const std::string&,
                           Done<std::string> done) {
  done(CannotChange());
}

void AsyncBackend::CreatePart(const std::string&, const NewPart&, Done<std::string> done) {
  done(CannotChange());
}

void AsyncBackend::DestroyPart(const std::string&, Done<std::string> done) { done(CannotChange()); }

}  // namespace penstock::device
