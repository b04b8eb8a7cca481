// Finds out which kernel the machine will boot next, from what its boot loader reads.
#pragma once

#include <string>
#include <string_view>

namespace penstock::os {

/// The release of the kernel of this machine, as `uname -r` prints it.
std::string RunningKernel();

/// Whether a text can be the release of a kernel: it begins with a digit, and consists of at most
/// 64 letters, digits and ". _ + ~ -".
bool IsKernelRelease(std::string_view text);

/// The release of the kernel that is booted by default below the host's root folder:
/// "5.15.0-112-generic". Empty where that is not known. In this order:
///
/// 1. the default of GRUB: next_entry or saved_entry of grubenv, or what grub.cfg sets, among the
///    entries of /boot/loader/entries (Boot Loader Specification) where grub.cfg has `blscfg` or is
///    missing, otherwise among those of grub.cfg in /boot/grub2 or /boot/grub;
/// 2. what the links /vmlinuz and /boot/vmlinuz lead to (Debian, Ubuntu);
/// 3. the newest kernel of /boot whose modules are in /lib/modules.
///
/// A grub.cfg or grubenv that cannot be read, or is larger than GRUB's own, gives no answer. All
/// links stay below the root. Blocks. Any thread.
std::string NextKernel(const std::string& root);

}  // namespace penstock::os
