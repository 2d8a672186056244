# install and export: the programs, the public headers, and what a client of the parameter
# server links. find_package(isthmus) gives isthmus::client.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The public API as one target. The libraries below it are installed because it needs them,
# their headers are not: they may change from version to version.
add_library(isthmus_client INTERFACE)
add_library(isthmus::client ALIAS isthmus_client)
set_target_properties(isthmus_client PROPERTIES EXPORT_NAME client)
target_compile_features(isthmus_client INTERFACE cxx_std_20)
set(ISTHMUS_INSTALLED isthmus_client)
foreach(module core proto compression transport worker)
  if(TARGET isthmus_${module})
    target_link_libraries(isthmus_client INTERFACE isthmus_${module})
    list(APPEND ISTHMUS_INSTALLED isthmus_${module})
  endif()
endforeach()
install(TARGETS ${ISTHMUS_INSTALLED} EXPORT isthmusTargets)

# The packages that these libraries were linked with, for isthmusConfig.cmake: a client has
# to find them again.
set(ISTHMUS_CLIENT_PACKAGES "")
foreach(target IN LISTS ISTHMUS_INSTALLED)
  get_target_property(linked ${target} INTERFACE_LINK_LIBRARIES)
  foreach(package cppzmq Protobuf yaml-cpp spdlog nlohmann_json hwy Boost OpenSSL ZLIB)
    string(TOLOWER "${linked}" lower_linked)
    string(TOLOWER ${package} lower_package)
    if(lower_linked MATCHES "(^|[;:<])${lower_package}($|[;:>])")
      list(APPEND ISTHMUS_CLIENT_PACKAGES ${package})
    endif()
  endforeach()
endforeach()
list(REMOVE_DUPLICATES ISTHMUS_CLIENT_PACKAGES)

foreach(program isthmus isthmus-trainer)
  if(TARGET ${program})
    install(TARGETS ${program})
  endif()
endforeach()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/isthmus)
install(DIRECTORY include/isthmus DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT isthmusTargets NAMESPACE isthmus:: DESTINATION ${package_folder})
configure_package_config_file(cmake/isthmusConfig.cmake.in isthmusConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(isthmusConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/isthmusConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/isthmusConfigVersion.cmake
        DESTINATION ${package_folder})
