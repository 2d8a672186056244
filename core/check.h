// ISTHMUS_CHECK: for bugs of ours only.
//
// Bytes, files, arguments and peers must never reach one: those give a Status.
//
// Threads: any.  Memory: none.  Errors: aborts, with file and line.

#pragma once

#include <cstdio>
#include <cstdlib>

#define ISTHMUS_CHECK(condition)                                                         \
  do {                                                                                   \
    if (!(condition)) [[unlikely]] {                                                     \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)
