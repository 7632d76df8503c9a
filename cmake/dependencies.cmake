# Every library that Nebula stands on. packages.txt has the Debian names.

find_package(Threads REQUIRED)
# CONFIG: CMake's own FindBoost is gone from 3.30 on.
find_package(Boost 1.74 CONFIG REQUIRED COMPONENTS program_options)
find_package(HDF5 REQUIRED COMPONENTS C)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(spdlog REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(sentencepiece REQUIRED IMPORTED_TARGET sentencepiece)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)

# SimGrid ships no CMake package on Debian 12 or 13.
find_path(SIMGRID_INCLUDE_DIR simgrid/s4u.hpp REQUIRED)
find_library(SIMGRID_LIBRARY simgrid REQUIRED)
add_library(simgrid INTERFACE IMPORTED)
target_include_directories(simgrid SYSTEM INTERFACE ${SIMGRID_INCLUDE_DIR})
target_link_libraries(simgrid INTERFACE ${SIMGRID_LIBRARY})

find_package(Torch 1.13 REQUIRED)
# Torch's flags ask for old language levels; its include folders are not ours to warn about.
add_library(torch_system INTERFACE)
target_include_directories(torch_system SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(torch_system INTERFACE ${TORCH_LIBRARIES})

# libtorch on the reference BLAS is 12 times slower: say so now rather than tonight. A libtorch that
# brings its own BLAS (MKL, in the builds of pytorch.org) does not load libblas.so.3.
find_library(NEBULA_TORCH_CPU torch_cpu HINTS ${TORCH_INSTALL_PREFIX}/lib REQUIRED)
execute_process(COMMAND ldd ${NEBULA_TORCH_CPU} OUTPUT_VARIABLE loaded ERROR_QUIET)
if(loaded MATCHES "libblas\\.so\\.3 => ([^ \n]+)")
  file(REAL_PATH ${CMAKE_MATCH_1} blas)
  if(blas MATCHES "/blas/libblas\\.so")
    message(FATAL_ERROR
            "libtorch would run on the reference BLAS (${blas}), which trains 12 times slower. "
            "Install libopenblas0-openmp (apt-get install libopenblas0-openmp); if it is "
            "installed, choose it with "
            "update-alternatives --config libblas.so.3-${CMAKE_LIBRARY_ARCHITECTURE}. "
            "Then configure again.")
  endif()
endif()
