# OneDNN::OneDNN: oneDNN 2.x in its OpenMP build with its C interface (Debian: libdnnl-dev). Its own CMake package
# requires the OpenCL headers; the C interface does not.
include(FindPackageHandleStandardArgs)
find_path(OneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.h)
find_library(OneDNN_LIBRARY dnnl)
mark_as_advanced(OneDNN_INCLUDE_DIR OneDNN_LIBRARY)
if(OneDNN_INCLUDE_DIR)
  file(STRINGS "${OneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" lines REGEX "define DNNL_VERSION_(MAJOR|MINOR) ")
  string(REGEX REPLACE "[^0-9]*([0-9]+)[^0-9]+([0-9]+).*" "\\1.\\2" OneDNN_VERSION "${lines}")
  file(STRINGS "${OneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_config.h" OneDNN_OPENMP
    REGEX "define DNNL_CPU_THREADING_RUNTIME DNNL_RUNTIME_OMP")
endif()
find_package_handle_standard_args(OneDNN REQUIRED_VARS OneDNN_LIBRARY OneDNN_INCLUDE_DIR OneDNN_OPENMP
  VERSION_VAR OneDNN_VERSION HANDLE_VERSION_RANGE)
if(OneDNN_FOUND AND NOT TARGET OneDNN::OneDNN)
  add_library(OneDNN::OneDNN UNKNOWN IMPORTED)
  set_target_properties(OneDNN::OneDNN PROPERTIES IMPORTED_LOCATION "${OneDNN_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${OneDNN_INCLUDE_DIR}")
endif()
