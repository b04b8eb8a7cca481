# Links gRPC from Debian's static archives without TLS (unix sockets need none), so that section garbage collection can drop unused code and no process maps the
# whole of libgrpc. Defines the target penstock_grpc and the function penstock_proto. The thread sanitizer uses the shared libraries: it can ignore modules that
# were built without it (tests/tsan.supp).
include_guard(GLOBAL)

set(CMAKE_FIND_LIBRARY_SUFFIXES_SAVED ${CMAKE_FIND_LIBRARY_SUFFIXES})
if(PENSTOCK_SANITIZE MATCHES thread)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .so)
else()
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
endif()
set(archives)
foreach(name grpc++_unsecure grpc_unsecure gpr upb address_sorting re2 cares protobuf-lite z
        absl_bad_optional_access absl_bad_variant_access absl_base absl_city absl_civil_time absl_cord absl_cord_internal absl_cordz_functions
        absl_cordz_handle absl_cordz_info absl_debugging_internal absl_demangle_internal absl_exponential_biased absl_graphcycles_internal
        absl_hash absl_hashtablez_sampler absl_int128 absl_log_severity absl_low_level_hash absl_malloc_internal absl_random_distributions
        absl_random_internal_platform absl_random_internal_pool_urbg absl_random_internal_randen absl_random_internal_randen_hwaes
        absl_random_internal_randen_hwaes_impl absl_random_internal_randen_slow absl_random_internal_seed_material
        absl_random_seed_gen_exception absl_random_seed_sequences absl_raw_hash_set absl_raw_logging_internal absl_spinlock_wait
        absl_stacktrace absl_status absl_statusor absl_str_format_internal absl_strerror absl_strings absl_strings_internal absl_symbolize
        absl_synchronization absl_throw_delegate absl_time absl_time_zone)
  find_library(PENSTOCK_ARCHIVE_${name} NAMES ${name} REQUIRED)
  mark_as_advanced(PENSTOCK_ARCHIVE_${name})
  list(APPEND archives ${PENSTOCK_ARCHIVE_${name}})
endforeach()
set(CMAKE_FIND_LIBRARY_SUFFIXES ${CMAKE_FIND_LIBRARY_SUFFIXES_SAVED})
find_program(PROTOC protoc REQUIRED)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)

# The archives have circular references.
add_library(penstock_grpc INTERFACE)
target_link_libraries(penstock_grpc INTERFACE -Wl,--start-group ${archives} -Wl,--end-group Threads::Threads ${CMAKE_DL_LIBS} rt)
target_compile_definitions(penstock_grpc INTERFACE GRPC_USE_PROTO_LITE)

# penstock_proto(TARGET FILE...): messages and services of these .proto files (lite runtime) as a static library; only .cc files include its headers, by file
# name, as system headers.
function(penstock_proto target)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target})
  file(MAKE_DIRECTORY ${folder})
  set(generated)
  foreach(proto ${ARGN})
    get_filename_component(proto ${proto} ABSOLUTE)
    get_filename_component(from ${proto} DIRECTORY)
    get_filename_component(name ${proto} NAME_WE)
    set(outputs ${folder}/${name}.pb.cc ${folder}/${name}.pb.h ${folder}/${name}.grpc.pb.cc ${folder}/${name}.grpc.pb.h)
    add_custom_command(OUTPUT ${outputs} DEPENDS ${proto} VERBATIM COMMENT "protoc ${name}.proto"
                       COMMAND ${PROTOC} --proto_path=${from} --cpp_out=${folder} --grpc_out=${folder}
                               --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} ${proto})
    list(APPEND generated ${outputs})
  endforeach()
  add_library(${target} STATIC ${generated})
  target_include_directories(${target} SYSTEM PUBLIC ${folder})
  target_link_libraries(${target} PUBLIC penstock_grpc PRIVATE penstock_flags)
  target_compile_options(${target} PRIVATE -w)
  penstock_together(${target} ${generated})
endfunction()
