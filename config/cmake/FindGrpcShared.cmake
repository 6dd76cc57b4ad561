# GrpcShared::GrpcShared: gRPC's C++ library (Debian: libgrpc++-dev). Its own CMake package requires the packages of all
# that it was built with. Sets GrpcShared_VERSION.
include(FindPackageHandleStandardArgs)
find_path(GrpcShared_INCLUDE_DIR grpcpp/generic/async_generic_service.h)
find_library(GrpcShared_LIBRARY grpc++)
find_library(GrpcShared_CORE_LIBRARY grpc)
find_library(GrpcShared_GPR_LIBRARY gpr)
find_library(GrpcShared_SYNC_LIBRARY absl_synchronization)  # of its headers
if(GrpcShared_INCLUDE_DIR)
  file(STRINGS "${GrpcShared_INCLUDE_DIR}/grpcpp/version_info.h" lines REGEX "define GRPC_CPP_VERSION_STRING ")
  string(REGEX REPLACE ".*\"([0-9.]+).*\".*" "\\1" GrpcShared_VERSION "${lines}")
endif()
mark_as_advanced(GrpcShared_INCLUDE_DIR GrpcShared_LIBRARY GrpcShared_CORE_LIBRARY GrpcShared_GPR_LIBRARY
  GrpcShared_SYNC_LIBRARY)
find_package_handle_standard_args(GrpcShared
  REQUIRED_VARS GrpcShared_LIBRARY GrpcShared_CORE_LIBRARY
  GrpcShared_GPR_LIBRARY GrpcShared_SYNC_LIBRARY GrpcShared_INCLUDE_DIR
  VERSION_VAR GrpcShared_VERSION HANDLE_VERSION_RANGE)
if(GrpcShared_FOUND AND NOT TARGET GrpcShared::GrpcShared)
  add_library(GrpcShared::GrpcShared UNKNOWN IMPORTED)
  set_target_properties(GrpcShared::GrpcShared PROPERTIES IMPORTED_LOCATION "${GrpcShared_LIBRARY}"
    INTERFACE_LINK_LIBRARIES "${GrpcShared_CORE_LIBRARY};${GrpcShared_GPR_LIBRARY};${GrpcShared_SYNC_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${GrpcShared_INCLUDE_DIR}")
endif()
