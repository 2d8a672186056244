# Every header compiles alone: each becomes a source of one line in an object library,
# which the test builds. So it is incremental, parallel and cached like any other target.

# Headers of libtorch cost half a minute each and are included by one program.
set(too_heavy "#include <torch/")

foreach(folder include core proto compression transport wan server worker trainer apps)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/${folder}/*.h)
  set(sources "")
  foreach(header IN LISTS headers)
    file(STRINGS ${PROJECT_SOURCE_DIR}/${header} heavy REGEX "${too_heavy}")
    if(heavy)
      continue()
    endif()
    string(REGEX REPLACE "^include/" "" spelled ${header})
    set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${header}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${spelled}\"\n")
    list(APPEND sources ${source})
  endforeach()
  if(NOT sources)
    continue()
  endif()
  add_library(isthmus_headers_${folder} OBJECT EXCLUDE_FROM_ALL ${sources})
  target_compile_options(isthmus_headers_${folder} PRIVATE -O0 -g0)
  isthmus_warnings(isthmus_headers_${folder})
  target_include_directories(isthmus_headers_${folder} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  if(NOT folder STREQUAL "include")
    target_include_directories(isthmus_headers_${folder} PRIVATE ${PROJECT_SOURCE_DIR})
    # With the folder's modules: for generated headers and the flags of their libraries.
    get_property(modules DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} PROPERTY BUILDSYSTEM_TARGETS)
    list(FILTER modules INCLUDE REGEX "^isthmus_")
    target_link_libraries(isthmus_headers_${folder} PRIVATE ${modules})
  endif()
  list(APPEND header_targets isthmus_headers_${folder})
endforeach()

isthmus_lint(headers_alone ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target ${header_targets})
set_tests_properties(lint_headers_alone PROPERTIES RESOURCE_LOCK build)

# The public ones with a second compiler too: users bring their own.
find_program(ISTHMUS_CLANG NAMES clang++)
if(ISTHMUS_CLANG)
  file(GLOB public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/isthmus/*.h)
  isthmus_lint(public_headers_clang ${ISTHMUS_CLANG} -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Werror
    -Wno-pragma-once-outside-header -I ${PROJECT_SOURCE_DIR}/include -x c++ ${public_headers})
endif()
