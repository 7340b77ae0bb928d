# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0

# Lets an executable find librmm.so where it was installed. librmm needs librapids_logger.so, which
# lies in a wheel of its own and is not on librmm's run path: the executable loads it by itself.
function(rmm_uvm_use_librmm target)
  set_target_properties(${target} PROPERTIES BUILD_RPATH "${librmm_libraries};${logger_libraries}")
  target_link_libraries(${target} PRIVATE -Wl,--no-as-needed
                                          "${logger_libraries}/librapids_logger.so")
endfunction()

# The same for one that compiles RMM's pool headers. They instantiate RMM's event code in the
# executable, which has to be as in the released librmm: without assertions, over the CUDA runtime.
function(rmm_uvm_use_rmm_pool target)
  target_compile_definitions(${target} PRIVATE NDEBUG)
  target_link_libraries(${target} PRIVATE "${cuda_include}/../lib/libcudart_static.a"
                                          ${CMAKE_DL_LIBS} rt)
  rmm_uvm_use_librmm(${target})
endfunction()
