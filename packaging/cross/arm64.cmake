# For 64-bit ARM boards under Linux.
set(RP_ARCH arm64)
set(RP_TRIPLET aarch64-linux-gnu)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/debian.cmake)
