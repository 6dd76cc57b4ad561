# Every outside library, found here and nowhere else. The Debian packages are in config/packages.txt.
find_package(Threads REQUIRED)
find_package(Boost 1.74 REQUIRED)                 # headers of DLL and Asio only: Boost::headers
find_package(Protobuf 3.21 REQUIRED)              # protobuf::libprotobuf, protobuf::protoc
find_package(Eigen3 3.3 REQUIRED NO_MODULE)       # Eigen3::Eigen
find_package(Snappy REQUIRED)                     # Snappy::snappy
find_package(fmt REQUIRED)                        # fmt::fmt
find_package(CLI11 REQUIRED)                      # CLI11::CLI11
find_package(nlohmann_json REQUIRED)              # nlohmann_json::nlohmann_json
if(BUILD_TESTING)
  find_package(GTest REQUIRED)                    # GTest::gtest, GTest::gmock, GTest::gtest_main
endif()
