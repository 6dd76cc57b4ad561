# Finds all external libraries; no other file does. config/packages.txt lists the Debian packages.
find_package(Threads REQUIRED)
find_package(Boost 1.74 REQUIRED)                 # headers of DLL and Asio only: Boost::headers
find_package(Protobuf 3.21 REQUIRED)              # protobuf::libprotobuf, protobuf::protoc
find_package(Eigen3 3.3 REQUIRED NO_MODULE)       # Eigen3::Eigen
find_package(Snappy REQUIRED)                     # Snappy::snappy
find_package(ZLIB REQUIRED)                       # ZLIB::ZLIB
find_package(fmt REQUIRED)                        # fmt::fmt
find_package(CLI11 REQUIRED)                      # CLI11::CLI11
find_package(nlohmann_json REQUIRED)              # nlohmann_json::nlohmann_json
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)  # headers only
find_library(RE2_LIBRARY re2 REQUIRED)            # re2::re2; Debian 12 ships no CMake package for it
find_path(RE2_INCLUDE_DIR re2/re2.h REQUIRED)
mark_as_advanced(TOMLPLUSPLUS_INCLUDE_DIR RE2_LIBRARY RE2_INCLUDE_DIR)
if(NOT TARGET re2::re2)
  add_library(re2::re2 UNKNOWN IMPORTED)
  set_target_properties(re2::re2 PROPERTIES IMPORTED_LOCATION "${RE2_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${RE2_INCLUDE_DIR}")
endif()

# Libraries of single plugins: AUTO builds the plugin if the library is found, ON requires it, OFF disables the plugin.
# Sets WEIR_HAVE_<option> and reports once why a plugin is off.
function(weir_optional_library option plugin package version)
  set(have OFF)
  if(WEIR_${option} STREQUAL ON)
    find_package(${package} ${version} REQUIRED)
    set(have ON)
  elseif(WEIR_${option} STREQUAL AUTO)
    find_package(${package} ${version} QUIET)
    set(have ${${package}_FOUND})
    if(NOT have)
      message(STATUS "${plugin} is off: ${package} ${version} was not found (config/packages.txt names its package)")
    endif()
  elseif(WEIR_${option} STREQUAL OFF)
    message(STATUS "${plugin} is off: WEIR_${option} is OFF")
  else()
    message(FATAL_ERROR "WEIR_${option} is '${WEIR_${option}}', wanted AUTO, ON or OFF")
  endif()
  set(WEIR_HAVE_${option} ${have} PARENT_SCOPE)
endfunction()
weir_optional_library(OPENBLAS kernels_openblas OpenBLASSerial "")  # OpenBLASSerial::OpenBLASSerial
weir_optional_library(ONEDNN kernels_onednn OneDNN 2.6...<3)        # OneDNN::OneDNN
weir_optional_library(IMAGES kernels_image ImageLibraries "")       # ImageLibraries::ImageLibraries
weir_optional_library(LLVM compiler_llvm LLVMShared 14...<20)       # LLVMShared::LLVMShared
if(WEIR_HAVE_LLVM AND WEIR_SANITIZER STREQUAL thread)
  message(STATUS "compiler_llvm is off: LLVM is not built for the thread sanitizer")
  set(WEIR_HAVE_LLVM OFF)
endif()
weir_optional_library(GRPC grpc GrpcShared 1.44...<2)               # GrpcShared::GrpcShared
if(WEIR_HAVE_GRPC AND WEIR_SANITIZER STREQUAL thread)
  message(STATUS "grpc is off: gRPC is not built for the thread sanitizer")
  set(WEIR_HAVE_GRPC OFF)
endif()
weir_optional_library(TLS "TLS of the plugin remote" OpenSSL 3.0)   # OpenSSL::SSL
set(WEIR_LLVM_VERSION "${LLVMShared_VERSION}")

if(BUILD_TESTING)
  find_package(GTest REQUIRED)                    # GTest::gtest, GTest::gmock, GTest::gtest_main
endif()
