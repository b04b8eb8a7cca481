// A CUDA program that loads NVIDIA's own library from the path in its argument and prints what
// cuInit returns. For mps_test.cc.
#include <cstdio>

#include <dlfcn.h>

int main(int argc, char** argv) {
  void* library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : nullptr;
  const auto init =
      library == nullptr ? nullptr : reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"));
  if (init == nullptr)
    return std::fprintf(stderr, "cuda-client LIBRARY: %s\n", argc == 2 ? dlerror() : "no library"),
           1;
  std::printf("cuInit %d\n", init(0));
  return 0;
}
