# install and export: find_package(isthmus) gives isthmus::worker and the rest.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(DIRECTORY include/isthmus DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT isthmusTargets NAMESPACE isthmus:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/isthmus)
configure_package_config_file(cmake/isthmusConfig.cmake.in isthmusConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/isthmus)
write_basic_package_version_file(isthmusConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/isthmusConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/isthmusConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/isthmus)
