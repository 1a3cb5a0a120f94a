# The flags every target of the project is compiled with, and the form of its tests.
add_library(lamella_flags INTERFACE)
target_include_directories(lamella_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
# No contraction: a*b+c must round twice in the compiler's code as in ours. Designated initialisers
# leave fields at their defaults on purpose, so that warning is off.
target_compile_options(lamella_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wno-missing-field-initializers -ffp-contract=off)
if(LAMELLA_WERROR)
  target_compile_options(lamella_flags INTERFACE -Werror)
endif()
if(LAMELLA_SANITIZE STREQUAL "address")
  target_compile_options(lamella_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all
                         -fno-omit-frame-pointer)
  target_link_options(lamella_flags INTERFACE -fsanitize=address,undefined)
elseif(LAMELLA_SANITIZE STREQUAL "thread")
  target_compile_options(lamella_flags INTERFACE -fsanitize=thread)
  target_link_options(lamella_flags INTERFACE -fsanitize=thread)
elseif(NOT LAMELLA_SANITIZE STREQUAL "none")
  message(FATAL_ERROR "LAMELLA_SANITIZE must be none, address or thread, got ${LAMELLA_SANITIZE}")
endif()
if(LAMELLA_PARALLEL STREQUAL "openmp")
  target_compile_definitions(lamella_flags INTERFACE LAMELLA_PARALLEL_OPENMP)
  target_link_libraries(lamella_flags INTERFACE OpenMP::OpenMP_CXX)
endif()
target_link_libraries(lamella_flags INTERFACE fmt::fmt spdlog::spdlog Threads::Threads)

# lamella_test(<layer>): one GoogleTest program from tests/<layer>/*.cpp, each test known to ctest.
function(lamella_test layer)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${layer}/*.cpp)
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" name ${layer})
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE lamella lamella_flags GTest::gtest_main GTest::gmock)
  target_precompile_headers(test_${name} PRIVATE <gtest/gtest.h> <gmock/gmock.h> <vector> <string>)
  # PRE_TEST: the list is asked for when ctest runs, so that a build never runs the program.
  gtest_discover_tests(test_${name} TEST_PREFIX ${layer}. DISCOVERY_MODE PRE_TEST
                       PROPERTIES LABELS ${layer} TIMEOUT 300)
endfunction()
