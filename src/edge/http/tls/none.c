/* libpenstock-tls.so is made of archives alone; CMake wants a source all the same. */
typedef int penstock_tls_has_no_source_of_its_own;
