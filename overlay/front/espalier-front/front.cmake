# The transport in Rust. tools/server/CMakeLists.txt includes this file only if ESPALIER_FRONT is set;
# without it nothing here is built and nothing is linked.

set(ESPALIER_FRONT_INCLUDE "" CACHE PATH "espalier: directory of espalier_front.h")

if (NOT EXISTS "${ESPALIER_FRONT}")
    message(FATAL_ERROR
        "ESPALIER_FRONT names a file that does not exist: ${ESPALIER_FRONT}\n"
        "It is the static library of the transport. `cargo xtask build` builds it and passes its path.")
endif()

if (NOT EXISTS "${ESPALIER_FRONT_INCLUDE}/espalier_front.h")
    message(FATAL_ERROR
        "ESPALIER_FRONT_INCLUDE has no espalier_front.h: '${ESPALIER_FRONT_INCLUDE}'\n"
        "It is the directory front/include of Espalier's repository. `cargo xtask build` passes it.")
endif()

if (NOT BUILD_SHARED_LIBS)
    # Two static libraries of Rust in one program define the same symbols.
    message(FATAL_ERROR "ESPALIER_FRONT needs BUILD_SHARED_LIBS: the kernels are in another library then.")
endif()

# As built by cargo. An imported target, so that its user is relinked when the library changes.
find_package(Threads REQUIRED)
add_library(espalier-front STATIC IMPORTED)
set_target_properties(espalier-front PROPERTIES IMPORTED_LOCATION "${ESPALIER_FRONT}")
set_property(TARGET espalier-front PROPERTY INTERFACE_LINK_LIBRARIES Threads::Threads ${CMAKE_DL_LIBS})
if (UNIX AND NOT APPLE)
    set_property(TARGET espalier-front APPEND PROPERTY INTERFACE_LINK_LIBRARIES m)
endif()
if (WIN32)
    set_property(TARGET espalier-front APPEND PROPERTY INTERFACE_LINK_LIBRARIES ws2_32 userenv ntdll bcrypt)
endif()

# What wakes the stream of a request is a part of the queue of results, which other programs have too.
target_sources(server-context PRIVATE "${CMAKE_CURRENT_LIST_DIR}/espalier-front-call.cpp"
                                      "${CMAKE_CURRENT_LIST_DIR}/espalier-front-call.h"
                                      "${CMAKE_CURRENT_LIST_DIR}/espalier-front-caller.h")
target_include_directories(server-context PUBLIC "${CMAKE_CURRENT_LIST_DIR}")
target_compile_definitions(server-context PUBLIC ESPALIER_FRONT)
target_sources(server-context PRIVATE "${CMAKE_CURRENT_LIST_DIR}/espalier-mailbox.cpp"
                                      "${CMAKE_CURRENT_LIST_DIR}/espalier-mailbox.h")

# Only the server has sockets.
target_sources(llama-server-impl PRIVATE "${CMAKE_CURRENT_LIST_DIR}/espalier-front-transport.cpp"
                                         "${CMAKE_CURRENT_LIST_DIR}/espalier-front-transport.h")
target_include_directories(llama-server-impl PRIVATE "${ESPALIER_FRONT_INCLUDE}")
target_link_libraries(llama-server-impl PRIVATE espalier-front)
if (NOT APPLE AND NOT WIN32)
    # Keeps the Rust symbols local.
    get_filename_component(ESPALIER_FRONT_NAME "${ESPALIER_FRONT}" NAME)
    target_link_options(llama-server-impl PRIVATE "LINKER:--exclude-libs,${ESPALIER_FRONT_NAME}")
endif()

# The options.
target_compile_definitions(llama-common PRIVATE ESPALIER_FRONT)
