# What all rooms share: language, warnings, where programs land, and how a room is declared.

include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# The build tree looks like the installation, so that programs find their presets the same way.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(NEBULA_SHARE_DIR ${CMAKE_BINARY_DIR}/share/nebula)

option(NEBULA_WERROR "Treat warnings as errors" OFF)
set(NEBULA_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=")

find_program(NEBULA_CCACHE ccache)
if(NEBULA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${NEBULA_CCACHE})
endif()

# A finding of the undefined-behaviour sanitizer ends the program, as one of the others does.
if(NEBULA_SANITIZE)
  add_compile_options(-fsanitize=${NEBULA_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${NEBULA_SANITIZE})
endif()
if(NEBULA_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()

# Warnings for our own targets only.
function(nebula_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
  # GCC 12 sees overlapping copies in std::string's operator+ (its bug 105651).
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
  if(NEBULA_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# nebula_room(NAME n SOURCES ... HEADERS ... USES rooms... LIBRARIES targets...)
# A room is a static library nebula_<name> of the folder's files. Its headers must each compile
# alone; USES are the rooms whose headers it may include.
function(nebula_room)
  cmake_parse_arguments(ROOM "" "NAME" "SOURCES;HEADERS;USES;LIBRARIES" ${ARGN})
  set(target nebula_${ROOM_NAME})
  add_library(${target} STATIC ${ROOM_SOURCES})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ROOM_HEADERS})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
  list(TRANSFORM ROOM_USES PREPEND nebula_)
  target_link_libraries(${target} PUBLIC ${ROOM_USES} PRIVATE ${ROOM_LIBRARIES})
  nebula_warnings(${target})
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
endfunction()

# nebula_program(NAME nebula-x SOURCES ... ROOMS rooms... LIBRARIES targets...)
function(nebula_program)
  cmake_parse_arguments(PROGRAM "" "NAME" "SOURCES;ROOMS;LIBRARIES" ${ARGN})
  add_executable(${PROGRAM_NAME} ${PROGRAM_SOURCES})
  list(TRANSFORM PROGRAM_ROOMS PREPEND nebula_)
  target_link_libraries(${PROGRAM_NAME} PRIVATE ${PROGRAM_ROOMS} ${PROGRAM_LIBRARIES})
  nebula_warnings(${PROGRAM_NAME})
  install(TARGETS ${PROGRAM_NAME})
endfunction()

# nebula_test(NAME room SOURCES ... LIBRARIES targets...)
# One Catch2 program a room; CTest sees each test case.
function(nebula_test)
  cmake_parse_arguments(TEST "" "NAME" "SOURCES;LIBRARIES" ${ARGN})
  set(target nebula_${TEST_NAME}_tests)
  add_executable(${target} ${TEST_SOURCES} ${PROJECT_SOURCE_DIR}/tests/catch_main.cpp)
  target_link_libraries(${target} PRIVATE ${TEST_LIBRARIES} nebula_catch)
  target_compile_definitions(${target} PRIVATE NEBULA_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                               NEBULA_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  nebula_warnings(${target})
  catch_discover_tests(${target} TEST_PREFIX "${TEST_NAME}: " PROPERTIES TIMEOUT 300)
endfunction()
