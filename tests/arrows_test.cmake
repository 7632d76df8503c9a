# Shows that tests/arrows.cmake fails where it must: each case is a small tree with one fault.
#
#   cmake -DSCRIPT=tests/arrows.cmake -DWORK=<an empty folder> -P tests/arrows_test.cmake

cmake_minimum_required(VERSION 3.25)

# A tree without fault: every include that is allowed, once.
function(make_tree)
  file(REMOVE_RECURSE "${WORK}")
  set(core_error.hpp "<string>")
  set(core_node.cpp "\"core/error.hpp\"" "<toml++/toml.h>" "<nlohmann/json.hpp>")
  set(core_program.hpp "<boost/program_options/options_description.hpp>")
  set(traces_h5.hpp "\"core/error.hpp\"" "<hdf5.h>")
  set(sim_platform.hpp "\"core/error.hpp\"" "<simgrid/s4u.hpp>")
  set(planner_search.hpp "\"core/error.hpp\"" "\"sim/platform.hpp\"")
  set(planner_main.cpp "\"planner/search.hpp\"" "\"traces/h5.hpp\"")
  set(exec_stage.cpp "\"core/error.hpp\"" "<torch/torch.h>" "<unistd.h>" "<boost/asio.hpp>")
  set(tests_all_test.cpp "\"exec/stage.hpp\"" "\"traces/h5.hpp\"" "<torch/torch.h>")
  foreach(name core_error.hpp core_node.cpp core_program.hpp traces_h5.hpp sim_platform.hpp
               planner_search.hpp planner_main.cpp exec_stage.cpp tests_all_test.cpp)
    string(REGEX REPLACE "^([a-z]+)_(.*)$" "\\1;\\2" parts "${name}")
    list(GET parts 0 room)
    list(GET parts 1 file)
    list(TRANSFORM ${name} PREPEND "#include ")
    list(JOIN ${name} "\n" text)
    file(WRITE "${WORK}/${room}/${file}" "#pragma once\n${text}\n")
    file(APPEND "${WORK}/${room}/CMakeLists.txt" "list(${file})\n")
  endforeach()
endfunction()

# Runs the script; the outcome must be success where `expected` is empty, else a failure whose
# message has `expected` in it.
function(expect expected)
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${WORK} -P ${SCRIPT}
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(expected STREQUAL "")
    if(NOT result EQUAL 0)
      message(FATAL_ERROR "A tree without fault was refused:\n${output}")
    endif()
    return()
  endif()
  if(result EQUAL 0)
    message(FATAL_ERROR "Was not noticed: ${expected}")
  endif()
  # CMake wraps its messages.
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  string(FIND "${output}" "${expected}" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "Expected '${expected}' in:\n${output}")
  endif()
endfunction()

# Adds an include to a file of the good tree.
function(refuse file header expected)
  make_tree()
  file(APPEND "${WORK}/${file}" "  #  include ${header}  // why\n")
  expect("${expected}")
endfunction()

make_tree()
expect("")

refuse(core/error.hpp "\"sim/platform.hpp\"" "core/error.hpp: \"sim/platform.hpp\": core may not include sim")
refuse(core/error.hpp "\"traces/h5.hpp\"" "core may not include traces")
refuse(traces/h5.hpp "\"sim/platform.hpp\"" "traces may not include sim")
refuse(traces/h5.hpp "\"exec/stage.hpp\"" "traces may not include exec")
refuse(sim/platform.hpp "\"planner/search.hpp\"" "sim may not include planner")
refuse(sim/platform.hpp "\"traces/h5.hpp\"" "sim may not include traces")
refuse(planner/search.hpp "\"traces/h5.hpp\"" "planner may not include traces")
refuse(planner/search.hpp "\"exec/stage.hpp\"" "planner may not include exec")
refuse(planner/main.cpp "\"exec/stage.hpp\"" "planner may not include exec")
refuse(exec/stage.cpp "\"sim/platform.hpp\"" "exec may not include sim")
refuse(exec/stage.cpp "\"traces/h5.hpp\"" "exec may not include traces")
refuse(exec/stage.cpp "\"tests/catch.hpp\"" "name headers of the project from its root")
refuse(exec/stage.cpp "\"stage.hpp\"" "name headers of the project from its root")

refuse(planner/search.hpp "<simgrid/s4u.hpp>" "simgrid belongs to sim alone")
refuse(exec/stage.cpp "<xbt/log.h>" "simgrid belongs to sim alone")
refuse(sim/platform.hpp "<torch/torch.h>" "torch belongs to exec alone")
refuse(traces/h5.hpp "<ATen/ATen.h>" "torch belongs to exec alone")
refuse(planner/search.hpp "<c10/util/Half.h>" "torch belongs to exec alone")
refuse(exec/stage.cpp "<hdf5.h>" "hdf5 belongs to traces alone")
refuse(planner/main.cpp "<H5Cpp.h>" "hdf5 belongs to traces alone")
refuse(sim/platform.hpp "<hdf5_hl.h>" "hdf5 belongs to traces alone")

refuse(core/error.hpp "<nlohmann/json.hpp>" "core includes the standard library and itself alone")
refuse(core/error.hpp "<toml++/toml.h>" "core includes the standard library and itself alone")
refuse(core/node.cpp "<boost/program_options.hpp>" "core includes the standard library")
refuse(core/program.hpp "<boost/asio.hpp>" "core includes the standard library")
refuse(core/node.cpp "<spdlog/spdlog.h>" "core includes the standard library")
refuse(core/node.cpp "<simgrid/s4u.hpp>" "simgrid belongs to sim alone")

make_tree()
file(WRITE "${WORK}/sim/forgotten.cpp" "int x;\n")
expect("sim/forgotten.cpp: not in sim/CMakeLists.txt")

make_tree()
file(WRITE "${WORK}/sim/forgotten.hpp" "#pragma once\n")
expect("sim/forgotten.hpp: not in sim/CMakeLists.txt")

make_tree()
file(WRITE "${WORK}/sim/inner.cpp" "int x;\n")
file(WRITE "${WORK}/sim/inner.hpp" "#pragma once\n")
file(APPEND "${WORK}/sim/CMakeLists.txt" "list(inner.cpp)\n")
expect("")

make_tree()
file(WRITE "${WORK}/tests/sim/platform_test.cpp" "int x;\n")
expect("tests/sim/platform_test.cpp: not in tests/CMakeLists.txt")

make_tree()
file(WRITE "${WORK}/exec/codecs/int8.cpp" "int x;\n")
expect("exec/codecs/int8.cpp: not in exec/CMakeLists.txt")
file(APPEND "${WORK}/exec/CMakeLists.txt" "list(codecs/int8.cpp)\n")
expect("")

make_tree()
string(REPEAT "// [ one; line ]\n" 401 text)
file(WRITE "${WORK}/core/error.hpp" "${text}")
expect("core/error.hpp: 401 lines")
string(REPEAT "// [ one; line ]\n" 400 text)
file(WRITE "${WORK}/core/error.hpp" "${text}")
expect("")

file(REMOVE_RECURSE "${WORK}")
expect("No sources under")
message(STATUS "Every fault was noticed")
