# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0

# Targets for headers and libraries that come as Python wheels. RMM's own CMake package is not used:
# it wants the CUDA toolkit, and its dependencies are downloaded at configure time.
#   wheel_cuda          CUDA's headers
#   wheel_rmm_MINOR     RMM's, for each of rmm_minors (26.10, say); wheel_rmm is the first one
#   rmm_packages_MINOR  a variable: the folder with RMM's Python packages
#   installed_rmm       a variable: the first of rmm_minors; librmm_root and logger_root are its folders
set(RMM_UVM_MORE_RMM "" CACHE STRING
  "Folders with the wheels of other RMM minors, as pip install --target makes them: each is built for")
execute_process(
  COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/wheel_headers.py" ${RMM_UVM_MORE_RMM}
  OUTPUT_VARIABLE wheel_paths
  OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE wheel_status)
if(NOT wheel_status EQUAL 0)
  message(FATAL_ERROR "librmm, nvidia-cuda-runtime and nvidia-cuda-crt have to be installed "
                      "beside ${Python_EXECUTABLE}, as pyproject.toml says")
endif()
string(REPLACE ";" "|" wheel_paths "${wheel_paths}")
string(REPLACE "\n" ";" wheel_paths "${wheel_paths}")
list(POP_FRONT wheel_paths cuda_include)

add_library(wheel_cuda INTERFACE)
target_include_directories(wheel_cuda SYSTEM INTERFACE "${cuda_include}")

foreach(line IN LISTS wheel_paths)
  string(REPLACE "|" ";" line "${line}")
  list(GET line 0 minor)
  list(GET line 1 librmm)
  list(GET line 2 logger)
  list(GET line 3 rmm_packages_${minor})
  if(minor IN_LIST rmm_minors)
    message(FATAL_ERROR "RMM_UVM_MORE_RMM has RMM ${minor} twice, or it is installed")
  endif()
  list(APPEND rmm_minors ${minor})
  add_library(wheel_rmm_${minor} INTERFACE)
  target_include_directories(
    wheel_rmm_${minor} SYSTEM INTERFACE "${librmm}/include/rapids" "${librmm}/include"
                                        "${logger}/include")
  target_link_libraries(wheel_rmm_${minor} INTERFACE wheel_cuda "${librmm}/lib64/librmm.so")
  target_compile_definitions(wheel_rmm_${minor}
                             INTERFACE LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE)
  if(NOT DEFINED installed_rmm)
    set(installed_rmm ${minor})
    set(librmm_root "${librmm}")
    set(logger_root "${logger}")
    add_library(wheel_rmm ALIAS wheel_rmm_${minor})
  endif()
endforeach()
