# cmake -DSOURCES="a.cl;b.clh" -DTABLE=out.c -P embed.cmake
# Bytes, not string literals: C11 promises no literal longer than 4095 characters.
set(arrays "")
set(rows "")
set(index 0)
foreach(source ${SOURCES})
  get_filename_component(name ${source} NAME)
  file(READ ${source} hex HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "static const unsigned char text_${index}[] = {\n${bytes}0};\n")
  string(APPEND rows "    {\"${name}\", text_${index}, sizeof text_${index} - 1},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${TABLE} "#include \"device/sources.h\"\n\n${arrays}
const rp_kernel_source rp_kernel_sources[] = {\n${rows}    {0, 0, 0},\n};\n")
