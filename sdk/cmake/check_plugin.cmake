# The static check at the end of weir_add_plugin: one export, the note, no undefined symbol of weir's core.
function(refuse text)
  file(REMOVE "${PLUGIN}")
  message(FATAL_ERROR "plugin ${PLUGIN}: ${text}")
endfunction()

execute_process(COMMAND "${NM}" -D --defined-only "${PLUGIN}" OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^ \n]+\n" exports "${text}")
list(TRANSFORM exports STRIP)
if(NOT exports STREQUAL "weir_plugin_query_v1")
  refuse("exports [${exports}], wanted exactly weir_plugin_query_v1")
endif()

execute_process(COMMAND "${READELF}" -SW "${PLUGIN}" OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
if(NOT text MATCHES "\\.note\\.weir +NOTE")
  refuse("section .note.weir of type NOTE is missing; does the plugin use the entry macro of the SDK?")
endif()

execute_process(COMMAND "${NM}" -D --undefined-only "${PLUGIN}" OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^ \n]*(4weir|weir_)[^ \n]*" open "${text}")
if(open)
  refuse("uses symbols of weir itself, which is not allowed: ${open}")
endif()
