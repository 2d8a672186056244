# isthmus_fuzz(frame_fuzz.cc isthmus::proto): one decoder, one program of libFuzzer. Seeds are in
# corpus/frame. The target `fuzzers` builds all.
add_custom_target(fuzzers)

function(isthmus_fuzz source)
  cmake_path(GET source STEM stem)
  add_executable(${stem} EXCLUDE_FROM_ALL ${source})
  isthmus_warnings(${stem})
  set_target_properties(${stem} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzzers)
  target_include_directories(${stem} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${stem} PRIVATE ${ARGN})
  target_link_options(${stem} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${stem})
endfunction()
