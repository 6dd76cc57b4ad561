# Every outside library, found here and nowhere else. The Debian packages are in config/packages.txt.
find_package(Threads REQUIRED)
find_package(Boost 1.74 REQUIRED)                 # headers of DLL and Asio only: Boost::headers
find_package(Protobuf 3.21 REQUIRED)              # protobuf::libprotobuf, protobuf::protoc
find_package(Eigen3 3.3 REQUIRED NO_MODULE)       # Eigen3::Eigen
find_package(Snappy REQUIRED)                     # Snappy::snappy
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
if(BUILD_TESTING)
  find_package(GTest REQUIRED)                    # GTest::gtest, GTest::gmock, GTest::gtest_main
endif()
