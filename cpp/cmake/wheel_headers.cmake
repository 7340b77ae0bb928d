# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0

# Targets for headers and libraries that come as Python wheels. RMM's own CMake package is not used:
# it wants the CUDA toolkit, and its dependencies are downloaded at configure time.
execute_process(
  COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/wheel_headers.py"
  OUTPUT_VARIABLE wheel_paths
  OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE wheel_status)
if(NOT wheel_status EQUAL 0)
  message(FATAL_ERROR "librmm-cu13==26.10.*, nvidia-cuda-runtime and nvidia-cuda-crt have to be "
                      "installed beside ${Python_EXECUTABLE}")
endif()
list(GET wheel_paths 0 librmm_root)
list(GET wheel_paths 1 logger_root)
list(GET wheel_paths 2 cuda_include)

add_library(wheel_cuda INTERFACE)
target_include_directories(wheel_cuda SYSTEM INTERFACE "${cuda_include}")

add_library(wheel_rmm INTERFACE)
target_include_directories(
  wheel_rmm SYSTEM INTERFACE "${librmm_root}/include/rapids" "${librmm_root}/include"
                             "${logger_root}/include")
target_link_libraries(wheel_rmm INTERFACE wheel_cuda "${librmm_root}/lib64/librmm.so")
target_compile_definitions(wheel_rmm INTERFACE LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE)
