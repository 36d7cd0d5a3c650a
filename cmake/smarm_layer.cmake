# smarm_layer(NAME [DEPS layer...]) makes the target smarm_NAME of the folder it is called in:
# every source there, but for the files whose suffix gives them another role
# (x_test.cpp, x_model.cpp, x_bench.cpp, x_fuzz.cpp). The tests become NAME_test, run by CTest;
# each x_bench.cpp becomes a program of its own, and each x_fuzz.cpp as smarm_fuzz says.
include(GoogleTest)

function(smarm_layer name)
  cmake_parse_arguments(arg "" "" "DEPS;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cpp *.S)
  set(tests ${sources})
  set(benches ${sources})
  set(fuzzers ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|model|bench|fuzz)\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cpp$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cpp$")

  add_library(smarm_${name} STATIC ${sources})
  target_link_libraries(smarm_${name} PUBLIC smarm_options ${arg_LIBRARIES})
  foreach(dep IN LISTS arg_DEPS)
    target_link_libraries(smarm_${name} PUBLIC smarm_${dep})
  endforeach()

  if(SMARM_BUILD_TESTS AND tests)
    smarm_test(${name}_test SOURCES ${tests} LIBRARIES smarm_${name})
  endif()
  if(SMARM_BUILD_BENCH)
    foreach(bench IN LISTS benches)
      get_filename_component(bench_name ${bench} NAME_WE)
      add_executable(${bench_name} ${bench})
      target_link_libraries(${bench_name} PRIVATE smarm_${name})
    endforeach()
  endif()
  foreach(fuzzer IN LISTS fuzzers)
    smarm_fuzz(${fuzzer} LIBRARIES smarm_${name})
  endforeach()
endfunction()

# smarm_test(NAME SOURCES file... [LIBRARIES target...]) makes a GoogleTest program and registers
# each of its tests with CTest, a process a test.
function(smarm_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  # Lines for backtraces are enough of a test; full debug information is a third of its build time.
  target_compile_options(${name} PRIVATE -g1)
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} smarm_test_support GTest::gtest)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT 180 LABELS ${name})
endfunction()

# smarm_fuzz(.../x_fuzz.cpp [LIBRARIES target...]) makes the fuzzer x_fuzz where SMARM_BUILD_FUZZ is
# on. Otherwise it makes x_corpus, which gives the same code what is kept in corpus/x beside it, under
# any compiler, and registers it with CTest: what was found once stays found.
function(smarm_fuzz source)
  cmake_parse_arguments(arg "" "" "LIBRARIES" ${ARGN})
  cmake_path(GET source STEM LAST_ONLY fuzzer)
  cmake_path(GET source PARENT_PATH folder)
  string(REGEX REPLACE "_fuzz$" "" stem ${fuzzer})
  if(SMARM_BUILD_FUZZ)
    add_executable(${fuzzer} ${source})
    target_link_options(${fuzzer} PRIVATE -fsanitize=fuzzer)
    target_link_libraries(${fuzzer} PRIVATE ${arg_LIBRARIES})
  elseif(SMARM_BUILD_TESTS)
    add_executable(${stem}_corpus ${source})
    target_compile_options(${stem}_corpus PRIVATE -g1)
    target_link_libraries(${stem}_corpus PRIVATE ${arg_LIBRARIES} smarm_corpus_main)
    add_test(NAME ${stem}_corpus COMMAND ${stem}_corpus ${folder}/corpus/${stem})
    set_tests_properties(${stem}_corpus PROPERTIES TIMEOUT 180)
  endif()
endfunction()
