# Debian's cross compiler over a folder of Debian's packages (packaging/cross/sysroot), which lies
# beside the build folders; the environment's RINGPIPE_SYSROOT names another one.
set(CMAKE_SYSTEM_NAME Linux)
if(DEFINED ENV{RINGPIPE_SYSROOT})
  set(CMAKE_SYSROOT $ENV{RINGPIPE_SYSROOT})
else()
  get_filename_component(CMAKE_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../../build-sysroot/${RP_ARCH} ABSOLUTE)
endif()
if(NOT EXISTS ${CMAKE_SYSROOT}/.ringpipe-sysroot)
  message(FATAL_ERROR "no packages of ${RP_ARCH} in ${CMAKE_SYSROOT}: ./bootstrap cross ${RP_ARCH} "
                      "fetches them")
endif()
set(CMAKE_C_COMPILER ${RP_TRIPLET}-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE ${RP_TRIPLET})
# The compiler's package has a C library of its own, which may be an older one.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-L${CMAKE_SYSROOT}/usr/lib/${RP_TRIPLET} -B${CMAKE_SYSROOT}/usr/lib/${RP_TRIPLET}")

# Libraries and headers there; protoc, the generator of nanopb and python3 here.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
    ${CMAKE_SYSROOT}/usr/lib/${RP_TRIPLET}/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)

# Tests that are programs of ours run through this.
set(CMAKE_CROSSCOMPILING_EMULATOR ${CMAKE_CURRENT_LIST_DIR}/emulate ${CMAKE_SYSTEM_PROCESSOR} ${CMAKE_SYSROOT})
