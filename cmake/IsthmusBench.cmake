# isthmus_bench(kernels_bench.cc isthmus::compression): one file, one program of Google Benchmark in
# BUILD/bench. The target `benchmarks` builds all.
add_custom_target(benchmarks)

function(isthmus_bench source)
  cmake_path(GET source STEM stem)
  add_executable(${stem} EXCLUDE_FROM_ALL ${source})
  isthmus_warnings(${stem})
  set_target_properties(${stem} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
  target_include_directories(${stem} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${stem} PRIVATE ${ARGN} benchmark::benchmark)
  add_dependencies(benchmarks ${stem})
endfunction()
