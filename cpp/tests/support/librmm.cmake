# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0

# Lets an executable find librmm.so and, through it, librapids_logger.so where the wheels put them.
# The logger lies in a wheel of its own, which librmm's own run path does not name: only DT_RPATH,
# the old kind of tag, is also searched for the libraries of libraries.
function(rmm_uvm_use_librmm target)
  set(folders "${librmm_root}/lib64" "${logger_root}/lib64")
  set_target_properties(${target} PROPERTIES BUILD_RPATH "${folders}")
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
endfunction()
