# Read by ctest, which sets program, filter, prefix, labels, environment, folder, list and timeout before: one ctest test
# for each GoogleTest suite of the program, <prefix><suite>.*, which runs the suite's tests in one process. `list` is the
# file that keeps the program's answer.
if(NOT EXISTS "${program}")
  return()  # ctest selects by label, and a preset builds the labels that it runs
endif()
if("${program}" IS_NEWER_THAN "${list}")
  execute_process(COMMAND "${program}" --gtest_list_tests "--gtest_filter=${filter}" WORKING_DIRECTORY "${folder}"
    TIMEOUT 60 OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE "${list}" "${lines}")
endif()
# A suite is a line such as "Suite." or "Values/Suite/0.  # TypeParam = float", its tests are indented.
file(STRINGS "${list}" lines REGEX "^ *[A-Za-z0-9_]")
set(suites "")
foreach(line IN LISTS lines)
  string(REGEX REPLACE " *#.*$" "" name "${line}")
  if(name MATCHES "^[^ ]+\\.$")
    set(suite "${name}")
    list(APPEND suites "${suite}")
    set("tests of ${suite}" "")
  elseif(name MATCHES "^  ([^ ]+)$" AND NOT "${suite}${CMAKE_MATCH_1}" MATCHES "DISABLED_")
    string(APPEND "tests of ${suite}" ":${suite}${CMAKE_MATCH_1}")
  endif()
endforeach()
foreach(suite IN LISTS suites)
  set(tests "${tests of ${suite}}")
  if(tests STREQUAL "")
    continue()
  endif()
  string(SUBSTRING "${tests}" 1 -1 tests)
  add_test("${prefix}${suite}*" "${program}" "--gtest_filter=${tests}")
  set_tests_properties("${prefix}${suite}*" PROPERTIES WORKING_DIRECTORY "${folder}" TIMEOUT ${timeout}
    LABELS "${labels}" ENVIRONMENT "${environment}")
endforeach()
