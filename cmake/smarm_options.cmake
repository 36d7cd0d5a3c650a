# Compiler flags that every target of the project shares, as one interface target.

find_package(Threads REQUIRED)

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(SMARM_CCACHE ccache)
  if(SMARM_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${SMARM_CCACHE})
  endif()
endif()
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
# Asserts stay on in release (SMARM_ASSERT does not look at NDEBUG); -g so that a backtrace has names.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g -DSMARM_DEBUG=1")

add_library(smarm_options INTERFACE)
target_compile_features(smarm_options INTERFACE cxx_std_23)
set_target_properties(smarm_options PROPERTIES INTERFACE_POSITION_INDEPENDENT_CODE ON)
target_include_directories(smarm_options INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_options(smarm_options INTERFACE
  # Our warnings are ours: a project that adds this one keeps its own.
  $<$<AND:$<BOOL:${PROJECT_IS_TOP_LEVEL}>,$<COMPILE_LANGUAGE:CXX>>:-Wall -Wextra -Wpedantic>
  $<$<AND:$<BOOL:${SMARM_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>
  # Frame pointers: perf and our own backtraces walk them. Clash protection: a frame larger than
  # the guard page must touch it on the way and not step over it.
  # Interposition: nobody replaces one of our functions, so the compiler may inline them.
  $<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>
  # A note on an ABI change of GCC 4.6, for every over-aligned parameter.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-psabi>
  -fno-omit-frame-pointer $<$<COMPILE_LANGUAGE:CXX>:-fstack-clash-protection>)
target_link_libraries(smarm_options INTERFACE Threads::Threads)

if(SMARM_SANITIZE STREQUAL "address")
  target_compile_options(smarm_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all)
  target_link_options(smarm_options INTERFACE -fsanitize=address,undefined)
  # g++ 12 loses sight of a constant order behind its instrumentation, and warns of what is none.
  target_compile_options(smarm_options INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-invalid-memory-model>)
elseif(SMARM_SANITIZE STREQUAL "thread")
  target_compile_options(smarm_options INTERFACE -fsanitize=thread $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-invalid-memory-model>)
  target_link_options(smarm_options INTERFACE -fsanitize=thread)
elseif(NOT SMARM_SANITIZE STREQUAL "")
  message(FATAL_ERROR "SMARM_SANITIZE is '${SMARM_SANITIZE}'; it takes address, thread or nothing")
endif()

if(SMARM_BUILD_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "SMARM_BUILD_FUZZ needs clang, which has libFuzzer")
  endif()
  # Everything, the libraries above all: a fuzzer sees only the branches that were compiled so.
  target_compile_options(smarm_options INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(smarm_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

if(SMARM_STRESS)
  target_compile_definitions(smarm_options INTERFACE SMARM_STRESS=1)
endif()
