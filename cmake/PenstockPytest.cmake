# penstock_pytest(NAME FILE... LABELS label... [TIMEOUT seconds] [CASE_TIMEOUT seconds] [TIMEOUT_OF_ALL seconds] [INSIDE command...] [ONLY_IN configuration]): the pytest files (a folder: all files in it)
# become the test NAME, which runs in an isolated machine (tests/support/isolated.py): the programs and the configuration of the real machine do not change the
# result, two suites do not affect each other, and every process of a suite ends with it. A case that takes longer than CASE_TIMEOUT fails with the stacks of
# all its threads. junit/NAME.xml in the build folder has the duration and failure of each case. INSIDE: the command that starts pytest there. ONLY_IN: all, where only `scripts/check --all` runs it.
# TIMEOUT_OF_ALL: the files are also the test NAME.all of the configuration `all`, at full size (PENSTOCK_CHECK_ALL=1) with this timeout; NAME itself then always has its usual size, so that
# its timeout stays below the limit of CI, 85 minutes.
function(penstock_pytest name)
  cmake_parse_arguments(suite "" "TIMEOUT;CASE_TIMEOUT;TIMEOUT_OF_ALL;ONLY_IN;SIZE" "LABELS;INSIDE" ${ARGN})
  if(NOT suite_TIMEOUT)
    set(suite_TIMEOUT 1800)
  endif()
  if(NOT suite_CASE_TIMEOUT)
    set(suite_CASE_TIMEOUT 600)
  endif()
  if(suite_TIMEOUT_OF_ALL)
    penstock_pytest(${name}.all ${suite_UNPARSED_ARGUMENTS} LABELS ${suite_LABELS} TIMEOUT ${suite_TIMEOUT_OF_ALL} CASE_TIMEOUT ${suite_CASE_TIMEOUT} INSIDE ${suite_INSIDE}
                    ONLY_IN all SIZE PENSTOCK_CHECK_ALL=1)
    set(suite_SIZE PENSTOCK_CHECK_ALL=0)
  endif()
  list(TRANSFORM suite_UNPARSED_ARGUMENTS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set(python ${PROJECT_SOURCE_DIR}/scripts/python -B)
  add_test(NAME ${name} CONFIGURATIONS ${suite_ONLY_IN} COMMAND ${python} ${PROJECT_SOURCE_DIR}/tests/support/isolated.py --keep ${CMAKE_BINARY_DIR}
           ${suite_INSIDE} ${python} -m pytest -v -ra -p no:cacheprovider --rootdir ${CMAKE_CURRENT_SOURCE_DIR} --durations=25 --timeout=${suite_CASE_TIMEOUT}
           --junitxml=${CMAKE_BINARY_DIR}/junit/${name}.xml --programs ${CMAKE_BINARY_DIR}/bin ${suite_UNPARSED_ARGUMENTS})
  set_tests_properties(${name} PROPERTIES LABELS "${suite_LABELS}" TIMEOUT ${suite_TIMEOUT} ENVIRONMENT "PENSTOCK_OFFLINE=1;${suite_SIZE}")
endfunction()
