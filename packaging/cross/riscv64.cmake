# For 64-bit RISC-V boards under Linux.
set(RP_ARCH riscv64)
set(RP_TRIPLET riscv64-linux-gnu)
set(CMAKE_SYSTEM_PROCESSOR riscv64)
include(${CMAKE_CURRENT_LIST_DIR}/debian.cmake)
