// Preloaded into NVIDIA's nvidia-smi: answers the library's call for undocumented functions, which
// the simulated library does not have, with a table of functions that are not supported.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

enum { kNotSupported = 3, kFunctions = 512 };

static int NotSupported(void) { return kNotSupported; }

static int Table(const void** table, const void* id) {
  static const void* functions[kFunctions];
  (void)id;
  functions[0] = (const void*)sizeof functions;
  for (int i = 1; i < kFunctions; i++) functions[i] = (const void*)NotSupported;
  *table = functions;
  return 0;
}

void* dlsym(void* library, const char* name) {
  static void* (*real)(void*, const char*);
  if (!real) real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  if (!real) real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  return strcmp(name, "nvmlInternalGetExportTable") == 0 ? (void*)Table : real(library, name);
}
