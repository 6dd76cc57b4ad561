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
# A suite is a line such as "Suite." or "Values/Suite/0.  # TypeParam = float"; its tests follow, indented.
set(suite "")
set(tests "")
macro(weir_end_suite)
  if(NOT tests STREQUAL "")
    string(SUBSTRING "${tests}" 1 -1 tests)
    add_test("${prefix}${suite}*" "${program}" "--gtest_filter=${tests}")
    set_tests_properties("${prefix}${suite}*" PROPERTIES WORKING_DIRECTORY "${folder}" TIMEOUT ${timeout}
      LABELS "${labels}" ENVIRONMENT "${environment}")
  endif()
  set(tests "")
endmacro()
file(STRINGS "${list}" lines REGEX "^ *[A-Za-z0-9_]")
foreach(line IN LISTS lines)
  string(REGEX REPLACE " *#.*$" "" name "${line}")
  if(name MATCHES "^[^ ]+\\.$")
    weir_end_suite()
    set(suite "${name}")
  elseif(NOT "${suite}${name}" MATCHES "DISABLED_")
    string(STRIP "${name}" name)
    string(APPEND tests ":${suite}${name}")
  endif()
endforeach()
weir_end_suite()
