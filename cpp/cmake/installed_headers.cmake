# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0

# Targets for headers and libraries that come as Python wheels or as conda's packages. RMM's own CMake
# package is not used: it wants the CUDA toolkit, and its dependencies are downloaded at configure time.
#   cuda_headers        CUDA's headers
#   librmm_MINOR        RMM's, for each of rmm_minors (26.10, say); librmm is the first one
#   rmm_packages_MINOR  a variable: the folder with RMM's Python packages
#   librmm_rpath_MINOR  a variable: the folder with librmm.so, seen from there
#   installed_rmm       a variable: the first of rmm_minors; librmm_libraries and logger_libraries are the
#                       folders with its libraries
set(RMM_UVM_MORE_RMM "" CACHE STRING
  "Folders with the wheels of other RMM minors, as pip install --target makes them: each is built for")
execute_process(
  COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/installed_headers.py" ${RMM_UVM_MORE_RMM}
  OUTPUT_VARIABLE header_paths
  OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE header_status)
if(NOT header_status EQUAL 0)
  message(FATAL_ERROR "librmm, nvidia-cuda-runtime and nvidia-cuda-crt have to be installed beside "
                      "${Python_EXECUTABLE}, as pyproject.toml says, or what conda/recipes says")
endif()
string(REPLACE ";" "|" header_paths "${header_paths}")
string(REPLACE "\n" ";" header_paths "${header_paths}")
list(POP_FRONT header_paths cuda_include)

add_library(cuda_headers INTERFACE)
target_include_directories(cuda_headers SYSTEM INTERFACE "${cuda_include}")

foreach(line IN LISTS header_paths)
  string(REPLACE "|" ";" line "${line}")
  list(GET line 0 minor)
  list(GET line 1 librmm)
  list(GET line 2 logger)
  list(GET line 3 rmm_packages_${minor})
  list(GET line 4 libraries)
  if(minor IN_LIST rmm_minors)
    message(FATAL_ERROR "RMM_UVM_MORE_RMM has RMM ${minor} twice, or it is installed")
  endif()
  list(APPEND rmm_minors ${minor})
  file(RELATIVE_PATH librmm_rpath_${minor} "${rmm_packages_${minor}}" "${librmm}/${libraries}")
  add_library(librmm_${minor} INTERFACE)
  target_include_directories(
    librmm_${minor} SYSTEM INTERFACE "${librmm}/include/rapids" "${librmm}/include"
                                     "${logger}/include")
  target_link_libraries(librmm_${minor} INTERFACE cuda_headers "${librmm}/${libraries}/librmm.so")
  target_compile_definitions(librmm_${minor}
                             INTERFACE LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE)
  if(NOT DEFINED installed_rmm)
    set(installed_rmm ${minor})
    set(librmm_libraries "${librmm}/${libraries}")
    set(logger_libraries "${logger}/${libraries}")
    add_library(librmm ALIAS librmm_${minor})
  endif()
endforeach()
