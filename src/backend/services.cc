// The actions and sharing services of all vendors: the part of all.h that the serving agent links.
// Links no backend.
#include "backend/all.h"

#define PENSTOCK_VENDOR(name)                                                               \
  namespace penstock::backend::name {                                                       \
  std::unique_ptr<device::Actions> MakeActions(os::Loop&, const device::Paths&);            \
  std::unique_ptr<device::SharingService> MakeSharingService(os::Loop&,                     \
                                                             const device::ServerOptions&); \
  bool IsServer(const std::string&, const os::ProcessInfo&);                                \
  std::string_view HealthSocket();                                                          \
  }
#include PENSTOCK_VENDORS
#undef PENSTOCK_VENDOR

namespace penstock::backend {

std::unique_ptr<device::Actions> MakeActions(std::string_view vendor, os::Loop& control,
                                             const device::Paths& paths) {
#define PENSTOCK_VENDOR(name) \
  if (vendor == #name) return name::MakeActions(control, paths);
#include PENSTOCK_VENDORS
#undef PENSTOCK_VENDOR
  return nullptr;
}

std::unique_ptr<device::SharingService> MakeSharingService(std::string_view vendor,
                                                           os::Loop& control,
                                                           const device::ServerOptions& options) {
#define PENSTOCK_VENDOR(name) \
  if (vendor == #name) return name::MakeSharingService(control, options);
#include PENSTOCK_VENDORS
#undef PENSTOCK_VENDOR
  return nullptr;
}

bool IsServer(const std::string& proc_root, const os::ProcessInfo& process) {
#define PENSTOCK_VENDOR(name) \
  if (name::IsServer(proc_root, process)) return true;
#include PENSTOCK_VENDORS
#undef PENSTOCK_VENDOR
  return false;
}

std::string_view HealthSocketOf(std::string_view vendor) {
#define PENSTOCK_VENDOR(name) \
  if (vendor == #name) return name::HealthSocket();
#include PENSTOCK_VENDORS
#undef PENSTOCK_VENDOR
  return "";
}

}  // namespace penstock::backend
