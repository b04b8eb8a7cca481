# penstock_pytest(NAME FILE... LABELS label... [TIMEOUT seconds] [CASE_TIMEOUT seconds] [INSIDE command...])
# The pytest files (a folder: all in it) are the test NAME, on a machine within the machine (tests/support/isolated.py): nothing that the
# real one runs or has configured changes the result, two suites never meet, and whatever a suite started ends with it. A case that takes
# longer than CASE_TIMEOUT fails with the stacks of all its threads. Durations and failures of each case are in junit/NAME.xml of the build folder.
# INSIDE: what starts pytest there.
function(penstock_pytest name)
  cmake_parse_arguments(suite "" "TIMEOUT;CASE_TIMEOUT" "LABELS;INSIDE" ${ARGN})
  if(NOT suite_TIMEOUT)
    set(suite_TIMEOUT 600)
  endif()
  if(NOT suite_CASE_TIMEOUT)
    set(suite_CASE_TIMEOUT 240)
  endif()
  list(TRANSFORM suite_UNPARSED_ARGUMENTS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set(python ${PROJECT_SOURCE_DIR}/scripts/python -B)
  add_test(NAME ${name} COMMAND ${python} ${PROJECT_SOURCE_DIR}/tests/support/isolated.py --keep ${CMAKE_BINARY_DIR}
           ${suite_INSIDE} ${python} -m pytest -v -ra -p no:cacheprovider --rootdir ${CMAKE_CURRENT_SOURCE_DIR} --durations=25 --timeout=${suite_CASE_TIMEOUT}
           --junitxml=${CMAKE_BINARY_DIR}/junit/${name}.xml --programs ${CMAKE_BINARY_DIR}/bin ${suite_UNPARSED_ARGUMENTS})
  set_tests_properties(${name} PROPERTIES LABELS "${suite_LABELS}" TIMEOUT ${suite_TIMEOUT} ENVIRONMENT PENSTOCK_OFFLINE=1)
endfunction()
