# What every room has in common: language, warnings, sanitizers, and the one function that turns a folder into a library with its tests.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

option(PENSTOCK_WERROR "Treat warnings as errors" ON)
set(PENSTOCK_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them: address,undefined or thread")

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(penstock_flags INTERFACE)
target_compile_options(penstock_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers
                       -ffunction-sections -fdata-sections -fno-semantic-interposition $<$<BOOL:${PENSTOCK_WERROR}>:-Werror>)
# When g++ 12 optimises fully it sees overlapping copies inside std::string (its bug 105651) and the alternative of a std::variant that is not
# there as uninitialised.
target_compile_options(penstock_flags INTERFACE "$<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-Wno-restrict;-Wno-maybe-uninitialized>")
target_compile_definitions(penstock_flags INTERFACE PENSTOCK_VERSION="${PROJECT_VERSION}")
target_link_options(penstock_flags INTERFACE -Wl,--gc-sections -Wl,--as-needed)
if(PENSTOCK_SANITIZE)
  # Everything is built with the sanitizer, the simulated libraries excepted: they live inside other people's processes. Its checks hide
  # from g++ that a variant's other alternative is not there.
  target_compile_options(penstock_flags INTERFACE -fsanitize=${PENSTOCK_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(penstock_flags INTERFACE -fsanitize=${PENSTOCK_SANITIZE})
endif()

find_package(Threads REQUIRED)
find_package(GTest REQUIRED)
include(GoogleTest)

# penstock_room(NAME [DEPS target...] [PRIVATE_DEPS target...] [TEST_DEPS target...])
# The .cc files of this folder become the static library penstock_NAME, its *_test.cc files the program NAME_test.
function(penstock_room name)
  cmake_parse_arguments(room "" "" "DEPS;PRIVATE_DEPS;TEST_DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(sources)
    add_library(penstock_${name} STATIC ${sources})
    set(visibility PUBLIC)
    target_link_libraries(penstock_${name} PRIVATE ${room_PRIVATE_DEPS})
  else()
    add_library(penstock_${name} INTERFACE)
    set(visibility INTERFACE)
  endif()
  target_include_directories(penstock_${name} ${visibility} ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(penstock_${name} ${visibility} penstock_flags ${room_DEPS})
  if(tests)
    add_executable(${name}_test ${tests})
    set_target_properties(${name}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_link_libraries(${name}_test PRIVATE penstock_${name} ${room_PRIVATE_DEPS} ${room_TEST_DEPS} GTest::gmock GTest::gtest_main Threads::Threads)
    target_compile_definitions(${name}_test PRIVATE PENSTOCK_SOURCE_DIR="${PROJECT_SOURCE_DIR}" PENSTOCK_BINARY_DIR="${CMAKE_BINARY_DIR}")
    gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST PROPERTIES LABELS unit TIMEOUT 60)
  endif()
endfunction()

# penstock_program(NAME [ROOM room] DEPS target...): the .cc files of this folder become the program NAME. With ROOM, main.cc alone does, and
# the rest is a room of that name, so that it can be tested.
function(penstock_program name)
  cmake_parse_arguments(program "" "ROOM" "DEPS" ${ARGN})
  if(program_ROOM)
    penstock_room(${program_ROOM} DEPS ${program_DEPS})
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
