# CUDA, where there is nvcc: ISTHMUS_CUDA is AUTO (use it if it is there), ON (it must be) or OFF.
# Sets ISTHMUS_HAS_CUDA. CMake finds the compiler; the runtime is linked statically, and nothing of
# FindCUDAToolkit is used: that of CMake 3.25 fails with nvcc 13.
set(ISTHMUS_CUDA "AUTO" CACHE STRING "AUTO, ON or OFF: the codecs on NVIDIA's devices")
set_property(CACHE ISTHMUS_CUDA PROPERTY STRINGS AUTO ON OFF)
set(ISTHMUS_HAS_CUDA OFF)

if(ISTHMUS_CUDA STREQUAL "AUTO" AND NOT ISTHMUS_SANITIZE)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(ISTHMUS_HAS_CUDA ON)
  endif()
elseif(ISTHMUS_CUDA AND NOT ISTHMUS_CUDA STREQUAL "AUTO")
  set(ISTHMUS_HAS_CUDA ON)
endif()

if(ISTHMUS_HAS_CUDA)
  # What nvcc 13 still makes, and for newer devices the last one's PTX.
  set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90 CACHE STRING "Which devices to compile for")
  if(ISTHMUS_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${ISTHMUS_CCACHE})
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc can.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
endif()
