# Device code that calls a function of the host, or refers to a constant of it, compiles to a trap without a
# word from nvcc. No file of the folder may have one, nor a fused multiply and add.
#
#   cmake -D NVCC=nvcc -D ROOT=folder -D OUT=folder -P device_code.cmake
file(GLOB sources ${ROOT}/compression/cuda/*.cu)
if(NOT sources)
  message(FATAL_ERROR "no device code in ${ROOT}/compression/cuda")
endif()
foreach(source IN LISTS sources)
  cmake_path(GET source STEM stem)
  set(ptx ${OUT}/${stem}.ptx)
  execute_process(COMMAND ${NVCC} -std=c++20 -fmad=false --expt-relaxed-constexpr -arch=compute_80 -ptx
    -I ${ROOT} -I ${ROOT}/include ${source} -o ${ptx} COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${ptx} text)
  if(NOT text MATCHES "\\.entry")
    message(FATAL_ERROR "${source} has no kernel: this test looks at the wrong thing")
  endif()
  foreach(instruction trap "fma\\.rn")
    if(text MATCHES "[ \t]${instruction}[^a-z]")
      message(SEND_ERROR "${source}: its device code has a '${instruction}'")
    endif()
  endforeach()
endforeach()
