/* libpenstock-tls.so consists of static archives only, but CMake requires a source file. */
typedef int penstock_tls_has_no_source_of_its_own;
