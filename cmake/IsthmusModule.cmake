# isthmus_module(NAME core SOURCES a.cc DEPENDS isthmus::x PRIVATE_DEPENDS yaml-cpp)
# One folder, one static library, one alias, the same warnings.
function(isthmus_module)
  cmake_parse_arguments(PARSE_ARGV 0 M "" "NAME" "SOURCES;DEPENDS;PRIVATE_DEPENDS")
  add_library(isthmus_${M_NAME} STATIC ${M_SOURCES})
  add_library(isthmus::${M_NAME} ALIAS isthmus_${M_NAME})
  set_target_properties(isthmus_${M_NAME} PROPERTIES EXPORT_NAME ${M_NAME})
  target_compile_features(isthmus_${M_NAME} PUBLIC cxx_std_20)
  target_include_directories(isthmus_${M_NAME} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:include>)
  isthmus_warnings(isthmus_${M_NAME})
  target_link_libraries(isthmus_${M_NAME} PUBLIC ${M_DEPENDS} PRIVATE ${M_PRIVATE_DEPENDS})
endfunction()

function(isthmus_warnings target)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic>)
  if(ISTHMUS_WERROR)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 sees overlapping copies in ("a" + std::string) at -O3 (GCC bug 105651).
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  endif()
endfunction()

# isthmus_test(core/mailbox_test.cc isthmus::core): one file, one binary, one ctest entry.
function(isthmus_test source)
  cmake_path(GET source STEM stem)
  add_executable(${stem} ${source})
  isthmus_warnings(${stem})
  # The code of a test is compiled often and run once: half the compiler's time.
  target_compile_options(${stem} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1 -g1>)
  set_target_properties(${stem} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${stem} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${stem} PRIVATE ${ARGN} GTest::gtest_main)
  add_test(NAME ${stem} COMMAND ${stem})
  set_tests_properties(${stem} PROPERTIES LABELS unit TIMEOUT 120)
endfunction()
