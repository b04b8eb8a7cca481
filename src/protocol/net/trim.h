// Gives back the memory of the private network library between its uses.
#pragma once

namespace penstock::protocol::net {

/// Releases the pages of the library's code and constants, because a handshake touches more of them
/// than all that follows; they are read again from the page cache when needed (about 30 soft
/// faults). Does nothing if the system's libraries are in use. Any thread.
void TrimLibrary();

}  // namespace penstock::protocol::net
