# The settings that every target shares.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_THREAD_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

find_program(ISTHMUS_CCACHE ccache)
if(ISTHMUS_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ISTHMUS_CCACHE})
endif()

# Regions with different CPUs must compute the same bits, so a multiply and an
# add are never fused. Nobody reads errno after a sqrt, and without it loops with
# one vectorise; no value changes.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off> $<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno>)

if(ISTHMUS_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(ISTHMUS_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -Wno-tsan)  # Asio uses fences that TSan does not model
  add_link_options(-fsanitize=thread)
elseif(ISTHMUS_SANITIZE STREQUAL "fuzz")
  # Clang's own; -fno-sanitize=function because clang 14's check rejects Asio's coroutines.
  set(fuzz_sanitizers -fsanitize=address,undefined -fno-sanitize=function)
  add_compile_options(-fsanitize=fuzzer-no-link ${fuzz_sanitizers} -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer)
  add_link_options(${fuzz_sanitizers})
elseif(ISTHMUS_SANITIZE)
  message(FATAL_ERROR "ISTHMUS_SANITIZE must be address, thread, fuzz or empty, not '${ISTHMUS_SANITIZE}'")
endif()
