# LLVMShared::LLVMShared: LLVM's shared library with its C interface (Debian: llvm-14-dev). Its own CMake package
# declares every static library and may require more packages. Sets LLVMShared_VERSION.
include(FindPackageHandleStandardArgs)
foreach(version RANGE 14 19)
  list(APPEND folders "/usr/lib/llvm-${version}" "/usr/local/lib/llvm-${version}")
  list(APPEND names "LLVM-${version}")
endforeach()
find_path(LLVMShared_INCLUDE_DIR llvm-c/Core.h HINTS ${folders} PATH_SUFFIXES include)
if(LLVMShared_INCLUDE_DIR)
  cmake_path(GET LLVMShared_INCLUDE_DIR PARENT_PATH folder)
  find_library(LLVMShared_LIBRARY NAMES ${names} LLVM HINTS "${folder}/lib" NO_DEFAULT_PATH)
  file(STRINGS "${LLVMShared_INCLUDE_DIR}/llvm/Config/llvm-config.h" lines REGEX "define LLVM_VERSION_STRING ")
  string(REGEX REPLACE ".*\"([0-9.]+).*\".*" "\\1" LLVMShared_VERSION "${lines}")
endif()
mark_as_advanced(LLVMShared_INCLUDE_DIR LLVMShared_LIBRARY)
find_package_handle_standard_args(LLVMShared REQUIRED_VARS LLVMShared_LIBRARY LLVMShared_INCLUDE_DIR
  VERSION_VAR LLVMShared_VERSION HANDLE_VERSION_RANGE)
if(LLVMShared_FOUND AND NOT TARGET LLVMShared::LLVMShared)
  add_library(LLVMShared::LLVMShared UNKNOWN IMPORTED)
  set_target_properties(LLVMShared::LLVMShared PROPERTIES IMPORTED_LOCATION "${LLVMShared_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${LLVMShared_INCLUDE_DIR}")
endif()
