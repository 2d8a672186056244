// How a process gives memory back to the system.
//
// Threads: once, before others are made.  Memory: see below.  Errors: none.

#pragma once

namespace isthmus::core {

// Messages of a mebibyte come and go by the thousand a second. By default glibc gives such memory back to the
// system whenever it is freed and has every page of it cleared when it is wanted again, which costs as much
// as the copy from the socket. After this up to 64 MiB that is freed at the end of an arena stays for the
// next message, and pieces below 32 MiB share arenas. Does nothing with other C libraries.
void keep_freed_memory() noexcept;

}  // namespace isthmus::core
