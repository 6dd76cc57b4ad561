# OpenBLASSerial::OpenBLASSerial: the static single-threaded archive of OpenBLAS (Debian: libopenblas-serial-dev).
include(FindPackageHandleStandardArgs)
find_path(OpenBLASSerial_INCLUDE_DIR cblas.h PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-serial openblas-serial
  NO_CMAKE_FIND_ROOT_PATH)
find_library(OpenBLASSerial_LIBRARY NAMES libopenblas.a PATH_SUFFIXES openblas-serial)
mark_as_advanced(OpenBLASSerial_INCLUDE_DIR OpenBLASSerial_LIBRARY)
if(OpenBLASSerial_INCLUDE_DIR AND NOT OpenBLASSerial_INCLUDE_DIR MATCHES "openblas-serial")
  set(OpenBLASSerial_INCLUDE_DIR OpenBLASSerial_INCLUDE_DIR-NOTFOUND)  # another BLAS's header
endif()
find_package_handle_standard_args(OpenBLASSerial REQUIRED_VARS OpenBLASSerial_LIBRARY OpenBLASSerial_INCLUDE_DIR)
if(OpenBLASSerial_FOUND AND NOT TARGET OpenBLASSerial::OpenBLASSerial)
  add_library(OpenBLASSerial::OpenBLASSerial STATIC IMPORTED)
  set_target_properties(OpenBLASSerial::OpenBLASSerial PROPERTIES IMPORTED_LOCATION "${OpenBLASSerial_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${OpenBLASSerial_INCLUDE_DIR}")
endif()
