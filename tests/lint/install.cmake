# An installed Isthmus can be found and used by somebody else's project.
isthmus_lint(install_consumer ${CMAKE_COMMAND}
  -D BUILD=${CMAKE_BINARY_DIR} -D CONSUMER=${CMAKE_CURRENT_SOURCE_DIR}/consumer
  -D SCRATCH=${CMAKE_CURRENT_BINARY_DIR}/install_consumer -D COMPILER=${CMAKE_CXX_COMPILER}
  -P ${CMAKE_CURRENT_SOURCE_DIR}/install_consumer.cmake)
set_tests_properties(lint_install_consumer PROPERTIES RESOURCE_LOCK build)
