# Settings of every module: language, warnings, sanitizers, precompiled headers, and the functions that build a library or a program with its tests from a
# folder.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)

option(PENSTOCK_TESTS "Build the tests" ON)
option(PENSTOCK_WERROR "Treat warnings as errors" ON)
option(PENSTOCK_PRECOMPILED_HEADERS "Precompile the headers that most files include; without them each file shows what it forgot to include" ON)
option(PENSTOCK_FUZZER "Instrument for libFuzzer, which clang has; the preset fuzz turns it on" OFF)
set(PENSTOCK_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them: address,undefined or thread")

# Lets the compiler cache reuse the objects of another checkout: paths below this one are passed to the compiler as relative ones, and the cache ignores the
# working folder and the time of a precompiled header.
find_program(CCACHE ccache)
if(CCACHE)
  set(launcher env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

add_library(penstock_flags INTERFACE)
target_compile_options(penstock_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers
                       -ffunction-sections -fdata-sections -fno-semantic-interposition $<$<BOOL:${PENSTOCK_WERROR}>:-Werror>)
# g++ 12, when it optimises or instruments for a sanitizer, wrongly reports copies that overlap or leave a std::string (its bug 105651), and an inactive
# alternative of a std::variant as uninitialised.
set(doubtful -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-maybe-uninitialized)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND (CMAKE_BUILD_TYPE STREQUAL Release OR PENSTOCK_SANITIZE))
  target_compile_options(penstock_flags INTERFACE ${doubtful})
endif()
# Programs contain no path of the checkout, so that the same sources build the same program everywhere.
target_compile_options(penstock_flags INTERFACE -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
target_compile_definitions(penstock_flags INTERFACE PENSTOCK_VERSION="${PROJECT_VERSION}")
target_link_options(penstock_flags INTERFACE -Wl,--gc-sections -Wl,--as-needed -Wl,-z,relro,-z,now)
# Hardening: a memory error ends the program instead of becoming exploitable; Debian's own packages use most of these options. A sanitizer replaces the
# functions that _FORTIFY_SOURCE checks. tests/packaging/hardening_test.py verifies the programs.
target_compile_options(penstock_flags INTERFACE -fstack-protector-strong -fstack-clash-protection)
target_compile_definitions(penstock_flags INTERFACE _GLIBCXX_ASSERTIONS)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64")
  target_compile_options(penstock_flags INTERFACE -fcf-protection)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64")
  target_compile_options(penstock_flags INTERFACE -mbranch-protection=standard)
endif()
if(NOT PENSTOCK_SANITIZE)
  foreach(language C CXX)  # before the options of a target, so that the tests, which are not optimised, can override it
    string(APPEND CMAKE_${language}_FLAGS_RELEASE " -D_FORTIFY_SOURCE=3")
  endforeach()
endif()
if(PENSTOCK_SANITIZE)
  # Everything is built with the sanitizer except the simulated libraries, which foreign processes load.
  target_compile_options(penstock_flags INTERFACE -fsanitize=${PENSTOCK_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(penstock_flags INTERFACE -fsanitize=${PENSTOCK_SANITIZE})
endif()

if(PENSTOCK_FUZZER)
  target_compile_options(penstock_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

find_package(Threads REQUIRED)
find_package(GTest REQUIRED)
include(GoogleTest)

# penstock_precompiled(NAME [OPTIONS option...] HEADERS header...): a target whose precompiled headers other targets can reuse.
function(penstock_precompiled name)
  cmake_parse_arguments(pch "" "" "OPTIONS;HEADERS" ${ARGN})
  file(WRITE ${CMAKE_BINARY_DIR}/precompiled/none.cc.new "")
  configure_file(${CMAKE_BINARY_DIR}/precompiled/none.cc.new ${CMAKE_BINARY_DIR}/precompiled/none.cc COPYONLY)
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/precompiled/none.cc)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE penstock_flags)
  target_compile_options(${name} PRIVATE ${pch_OPTIONS} ${PENSTOCK_PCH_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${pch_HEADERS})
endfunction()

# Tests are compiled without optimisation: they are half of all code and run briefly. The code under test is built as it ships. The other options match those of
# the libraries and GoogleTest's target, so that the fakes and the programs share one precompiled header.
set(PENSTOCK_TEST_OPTIONS -fPIC -DGTEST_HAS_PTHREAD=1)
if(CMAKE_BUILD_TYPE STREQUAL Release)
  list(PREPEND PENSTOCK_TEST_OPTIONS -O0 -U_FORTIFY_SOURCE)
endif()
if(PENSTOCK_PRECOMPILED_HEADERS)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    set(PENSTOCK_PCH_OPTIONS -fpch-preprocess)  # required by ccache
  endif()
  set(standard <algorithm> <array> <atomic> <chrono> <cstdint> <cstring> <deque> <filesystem> <functional> <map> <memory> <mutex> <optional> <set> <span>
      <string> <string_view> <unordered_map> <utility> <variant> <vector> <base/core/result.h>)
  penstock_precompiled(penstock_pch HEADERS ${standard})
  penstock_precompiled(penstock_program_pch HEADERS ${standard} <nlohmann/json.hpp>)
  penstock_precompiled(penstock_test_pch OPTIONS ${PENSTOCK_TEST_OPTIONS} HEADERS ${standard} <fstream> <thread> <gmock/gmock.h> <gtest/gtest.h>)
endif()

# penstock_compiled(TARGET precompiled-headers): sets TARGET's compiler flags, and its precompiled headers where enabled.
function(penstock_compiled target headers)
  if(headers STREQUAL penstock_test_pch)
    target_compile_options(${target} PRIVATE ${PENSTOCK_TEST_OPTIONS})
  endif()
  if(PENSTOCK_PRECOMPILED_HEADERS)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${PENSTOCK_PCH_OPTIONS}>)
    target_precompile_headers(${target} REUSE_FROM ${headers})
  endif()
endfunction()

# penstock_test(PROGRAM SOURCES file... [LABELS label...] [DEPS target...] [NEEDS target...] [TIMEOUT seconds] [ONLY pattern]): a program of GoogleTest cases,
# each a separate test. NEEDS: targets that it starts or loads, and does not link. ONLY: registers those cases; another program starts the others. With the
# label `root`, each case has its own isolated machine (tests/support/isolated.py).
function(penstock_test program)
  cmake_parse_arguments(test "" "TIMEOUT;ONLY" "SOURCES;LABELS;DEPS;NEEDS" ${ARGN})
  if(NOT PENSTOCK_TESTS)
    return()
  endif()
  if(NOT test_LABELS)
    set(test_LABELS unit)
  endif()
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 120)
  endif()
  add_executable(${program} ${test_SOURCES})
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${program} PRIVATE penstock_flags ${test_DEPS} GTest::gmock GTest::gtest_main Threads::Threads)
  penstock_compiled(${program} penstock_test_pch)
  if(test_NEEDS)
    add_dependencies(${program} ${test_NEEDS})
  endif()
  if("root" IN_LIST test_LABELS)
    find_program(PYTHON3 python3 REQUIRED)
    set_target_properties(${program} PROPERTIES CROSSCOMPILING_EMULATOR "${PYTHON3};${PROJECT_SOURCE_DIR}/tests/support/isolated.py")
  endif()
  if(test_ONLY)
    set(filter TEST_FILTER ${test_ONLY})
  endif()
  # Without a printer a case's parameter is shown as its bytes, including pointers, so that the test's name would change in every run.
  gtest_discover_tests(${program} NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 ${filter} PROPERTIES LABELS "${test_LABELS}" TIMEOUT ${test_TIMEOUT})
endfunction()

# penstock_room(NAME [PROGRAM] [TEST_ONLY] [GROUPS folder...] [DEPS target...] [PRIVATE_DEPS target...] [TEST_DEPS target...] [TEST_NEEDS target...])
# The .cc files of this folder and of the folders GROUPS below it become the static library penstock_NAME, the *_test.cc files among them the
# program NAME_test. PROGRAM: the library of a program, with its command line. TEST_ONLY: no program links it.
function(penstock_room name)
  cmake_parse_arguments(room "PROGRAM;TEST_ONLY" "" "GROUPS;DEPS;PRIVATE_DEPS;TEST_DEPS;TEST_NEEDS" ${ARGN})
  set(patterns ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  foreach(group IN LISTS room_GROUPS)
    list(APPEND patterns ${CMAKE_CURRENT_SOURCE_DIR}/${group}/*.cc)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(sources)
    add_library(penstock_${name} STATIC ${sources})
    set(visibility PUBLIC)
    target_link_libraries(penstock_${name} PRIVATE ${room_PRIVATE_DEPS})
    if(room_PROGRAM)
      penstock_compiled(penstock_${name} penstock_program_pch)
    elseif(room_TEST_ONLY)
      penstock_compiled(penstock_${name} penstock_test_pch)
    else()
      penstock_compiled(penstock_${name} penstock_pch)
    endif()
  else()
    add_library(penstock_${name} INTERFACE)
    set(visibility INTERFACE)
  endif()
  target_include_directories(penstock_${name} ${visibility} ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(penstock_${name} ${visibility} penstock_flags ${room_DEPS})
  if(tests)
    penstock_test(${name}_test SOURCES ${tests} DEPS penstock_${name} ${room_PRIVATE_DEPS} ${room_TEST_DEPS} NEEDS ${room_TEST_NEEDS})
  endif()
endfunction()

# penstock_program(NAME [ROOM module [GROUPS folder...]] DEPS target...): the .cc files of this folder become the program NAME. With ROOM, main.cc alone does, and
# the rest is a module of that name, so that it can be tested.
function(penstock_program name)
  cmake_parse_arguments(program "" "ROOM" "GROUPS;DEPS;TEST_DEPS" ${ARGN})
  if(program_ROOM)
    penstock_room(${program_ROOM} PROGRAM GROUPS ${program_GROUPS} DEPS ${program_DEPS} TEST_DEPS ${program_TEST_DEPS})
    add_executable(${name} main.cc)
    target_link_libraries(${name} PRIVATE penstock_${program_ROOM} Threads::Threads)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE penstock_flags ${program_DEPS} Threads::Threads)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()
