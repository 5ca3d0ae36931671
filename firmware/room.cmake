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
# A '-' in a kind's name is written '_' in files and symbols.
function(rp_registry room noun)
  set(table ${CMAKE_CURRENT_BINARY_DIR}/${noun}_registry.c)
  set(externs "")
  set(rows "")
  foreach(kind ${ARGN})
    string(REPLACE "-" "_" id ${kind})
    if(NOT EXISTS ${CMAKE_SOURCE_DIR}/tests/${room}/test_${noun}_${id}.c)
      message(FATAL_ERROR "${noun} '${kind}' has no tests/${room}/test_${noun}_${id}.c")
    endif()
    target_sources(rp_${room} PRIVATE ${noun}_${id}.c)
    string(APPEND externs "extern const rp_${noun}_kind rp_${noun}_${id};\n")
    string(APPEND rows "    &rp_${noun}_${id},\n")
    set_property(GLOBAL APPEND PROPERTY RP_TESTS_${room} test_${noun}_${id})
  endforeach()
  file(CONFIGURE OUTPUT ${table} CONTENT
       "#include \"${room}/${noun}.h\"\n\n${externs}\nconst rp_${noun}_kind *const rp_${noun}_kinds[] = {\n${rows}    0,\n};\n"
       @ONLY)
  target_sources(rp_${room} PRIVATE ${table})
endfunction()

# One test program a source file: tests/<room>/test_<x>.c, its own process, skip = 77. It has 180 s,
# for one whose kernels are in no cache yet takes 10 times as long as the next time.
#   rp_tests(sched ROOMS sched NAMES test_sched) ; tests of registered kinds are added by themselves.
function(rp_tests room)
  cmake_parse_arguments(ARG "" "TIMEOUT" "ROOMS;NAMES;LIBS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 180)
  endif()
  if(RP_SANITIZE) # a sanitized program takes its time
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 4")
  endif()
  get_property(kinds GLOBAL PROPERTY RP_TESTS_${room})
  foreach(test ${ARG_NAMES} ${kinds})
    add_executable(${test} ${test}.c)
    set_target_properties(${test} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_include_directories(${test} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    foreach(r ${ARG_ROOMS})
      target_link_libraries(${test} PRIVATE rp_${r})
    endforeach()
    target_link_libraries(${test} PRIVATE PkgConfig::CMOCKA ${ARG_LIBS} m)
    add_test(NAME ${room}/${test} COMMAND ${test})
    set_tests_properties(${room}/${test} PROPERTIES TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77
      ENVIRONMENT "RP_SOURCE_DIR=${CMAKE_SOURCE_DIR};RP_BUILD_DIR=${CMAKE_BINARY_DIR};RINGPIPE_TUNING=/nonexistent")
  endforeach()
endfunction()
