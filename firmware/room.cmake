# The only build code: rooms, registries, kernels, tests.

# A room is a folder with a card (README.md) and a static library of the same name.
#   rp_room(sched MAY_USE base SOURCES sched.c LIBS m)
# MAY_USE is the include rule of the house: the link order and tests/tidy.py both follow it.
function(rp_room name)
  cmake_parse_arguments(ARG "" "" "MAY_USE;SOURCES;LIBS" ${ARGN})
  add_library(rp_${name} STATIC ${ARG_SOURCES})
  target_include_directories(rp_${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/..)
  foreach(room ${ARG_MAY_USE})
    target_link_libraries(rp_${name} PUBLIC rp_${room})
  endforeach()
  target_link_libraries(rp_${name} PUBLIC ${ARG_LIBS})
endfunction()

# A registry is a list of kinds: for each name it compiles <noun>_<name>.c, which exports
# `const rp_<noun>_kind rp_<noun>_<name>`, puts it into the generated table rp_<noun>_kinds
# (NULL-terminated, declared in <room>/<noun>.h), and demands a test of the same name.
#   rp_registry(nn layer dense conv2d ...)
# A '-' in a kind's name is written '_' in files and symbols. FAMILY <name> begins a list of kinds that
# one file <noun>_<name>.c exports, with one test.
function(rp_registry room noun)
  set(table ${CMAKE_CURRENT_BINARY_DIR}/${noun}_registry.c)
  set(externs "")
  set(rows "")
  set(files "")
  set(family "")
  foreach(kind ${ARGN})
    string(REPLACE "-" "_" id ${kind})
    if(kind STREQUAL FAMILY)
      set(family next)
    elseif(family STREQUAL next)
      set(family ${id})
      list(APPEND files ${id})
    else()
      string(APPEND externs "extern const rp_${noun}_kind rp_${noun}_${id};\n")
      string(APPEND rows "    &rp_${noun}_${id},\n")
      if(NOT family)
        list(APPEND files ${id})
      endif()
    endif()
  endforeach()
  foreach(file ${files})
    if(NOT EXISTS ${CMAKE_SOURCE_DIR}/tests/${room}/test_${noun}_${file}.c)
      message(FATAL_ERROR "${noun} '${file}' has no tests/${room}/test_${noun}_${file}.c")
    endif()
    target_sources(rp_${room} PRIVATE ${noun}_${file}.c)
    set_property(GLOBAL APPEND PROPERTY RP_TESTS_${room} test_${noun}_${file})
  endforeach()
  file(CONFIGURE OUTPUT ${table} CONTENT
       "#include \"${room}/${noun}.h\"\n\n${externs}\nconst rp_${noun}_kind *const rp_${noun}_kinds[] = {\n${rows}    0,\n};\n"
       @ONLY)
  target_sources(rp_${room} PRIVATE ${table})
endfunction()

# The tests of a room are one program, build/tests/tests_<room>, so that a changed line links a handful
# of programs. `tests_<room> test_<x>` runs tests/<room>/test_<x>.c; CTest runs each in a process of its
# own, skip = 77, within 180 s, because a test whose kernels are in no cache takes 10 times as long.
#   rp_tests(sched ROOMS sched NAMES test_sched) ; tests of registered kinds are added by themselves.
# A later call for the same room adds tests to its program, with another TIMEOUT if it names one.
function(rp_tests room)
  cmake_parse_arguments(ARG "" "TIMEOUT" "ROOMS;NAMES;LIBS;SOURCES" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 180)
  endif()
  if(RP_SANITIZE) # a sanitized program is several times slower
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 4")
  endif()
  set(program tests_${room})
  if(TARGET ${program})
    set(kinds "")
  else()
    get_property(kinds GLOBAL PROPERTY RP_TESTS_${room})
    add_executable(${program})
    set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_include_directories(${program} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    target_link_libraries(${program} PRIVATE PkgConfig::CMOCKA m)
    # Written when all calls for the room were read.
    set_property(GLOBAL APPEND PROPERTY RP_TEST_PROGRAMS ${room})
  endif()
  foreach(r ${ARG_ROOMS})
    target_link_libraries(${program} PRIVATE rp_${r})
  endforeach()
  target_link_libraries(${program} PRIVATE ${ARG_LIBS})
  target_sources(${program} PRIVATE ${ARG_SOURCES})
  foreach(test ${ARG_NAMES} ${kinds})
    target_sources(${program} PRIVATE ${test}.c)
    set_source_files_properties(${test}.c PROPERTIES COMPILE_OPTIONS
      "-Dmain=main_of_${test};-include;${CMAKE_CURRENT_BINARY_DIR}/mains.h"
      OBJECT_DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/mains.h)
    set_property(GLOBAL APPEND PROPERTY RP_TEST_MAINS_${room} ${test})
    add_test(NAME ${room}/${test} COMMAND ${program} ${test})
    set_tests_properties(${room}/${test} PROPERTIES TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77
      ENVIRONMENT "RP_SOURCE_DIR=${CMAKE_SOURCE_DIR};RP_BUILD_DIR=${CMAKE_BINARY_DIR};RINGPIPE_TUNING=/nonexistent")
  endforeach()
endfunction()

# After all rp_tests(): the main() of each test program, which calls that of the test that is named.
function(rp_test_programs)
  get_property(rooms GLOBAL PROPERTY RP_TEST_PROGRAMS)
  foreach(room ${rooms})
    get_property(tests GLOBAL PROPERTY RP_TEST_MAINS_${room})
    set(prototypes "#pragma once\n")
    set(rows "")
    foreach(test ${tests})
      file(STRINGS ${CMAKE_SOURCE_DIR}/tests/${room}/${test}.c takes_words REGEX "^int main\\(int argc")
      if(takes_words)
        string(APPEND prototypes "int main_of_${test}(int argc, char **argv);\n")
        string(APPEND rows "    {\"${test}\", 0, main_of_${test}},\n")
      else()
        string(APPEND prototypes "int main_of_${test}(void);\n")
        string(APPEND rows "    {\"${test}\", main_of_${test}, 0},\n")
      endif()
    endforeach()
    set(folder ${CMAKE_BINARY_DIR}/tests/${room})
    file(CONFIGURE OUTPUT ${folder}/mains.h CONTENT "${prototypes}" @ONLY)
    file(CONFIGURE OUTPUT ${folder}/mains.c CONTENT
         "#include \"mains.h\"\n\n#include \"one_of.h\"\n\nconst rp_one_of_test rp_tests_here[] = {\n${rows}    {0, 0, 0},\n};\n"
         @ONLY)
    target_sources(tests_${room} PRIVATE ${folder}/mains.c ${CMAKE_SOURCE_DIR}/tests/one_of.c)
  endforeach()
endfunction()
