//! Reference builds, which the gate compares with. They compute with the same instructions as the variant that is
//! shipped; everything else is compiled at a lower level, and several sources at a time, which takes about a third of
//! the time. Upstream's tests are compiled like this in every build: they only compare what the libraries compute.

use std::collections::BTreeMap;

/// The cache entry that marks a reference build, in CMake and in the manifest. Its value is the digest of
/// `CMAKE`, so that a change of it configures a build folder again.
const ENTRY: &str = "ESPALIER_REFERENCE";

/// The cache entry that names the file with `CMAKE`.
pub const INCLUDE: &str = "CMAKE_PROJECT_INCLUDE";

/// Name of the file with `CMAKE`, in the build folder.
pub const FILE: &str = "espalier-compared.cmake";

/// Hint for a compiler error in sources that are compiled as one.
pub const HINT: &str =
    "if the sources compile alone, add one of them to the exceptions in build/reference.rs";

/// Read by CMake after each `project()`; the last calls in upstream's top folder change the targets. A compiler uses
/// the last level that it is given. `ggml` does the arithmetic on tensors, so it keeps the level of the product. The
/// results of the other sources do not depend on the level: no flag allows a compiler to reorder their floating-point
/// operations, and they are compiled for a base instruction set without fused ones on x86-64. In a build that is not a
/// reference, only targets below `tests` are changed, so that nothing in its package is compiled again.
pub const CMAKE: &str = "\
# Compiles what is compared and never timed at -O1, several sources at a time: everything but ggml in a reference build,
# upstream's tests in any other.
# Names the entry, so that CMake does not warn of one that is not used.
set(ESPALIER_REFERENCE ${ESPALIER_REFERENCE})
if (NOT CMAKE_CURRENT_SOURCE_DIR STREQUAL CMAKE_SOURCE_DIR OR CMAKE_VERSION VERSION_LESS 3.19 OR MSVC)
    return()
endif()

function(compile_faster folder)
    get_property(subfolders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
    foreach(subfolder IN LISTS subfolders)
        if (NOT subfolder MATCHES \"^${CMAKE_SOURCE_DIR}/ggml(/|$)\")
            compile_faster(${subfolder})
        endif()
    endforeach()
    get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
        get_target_property(type ${target} TYPE)
        if (type MATCHES \"LIBRARY|EXECUTABLE\" AND NOT type STREQUAL \"INTERFACE_LIBRARY\")
            target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C,CXX>:-O1>)
            set_target_properties(${target} PROPERTIES UNITY_BUILD ON)
        endif()
    endforeach()
endfunction()

# The folder has no targets unless the tests are switched on.
function(compile_tests_faster)
    get_property(subfolders DIRECTORY ${CMAKE_SOURCE_DIR} PROPERTY SUBDIRECTORIES)
    if (${CMAKE_SOURCE_DIR}/tests IN_LIST subfolders)
        compile_faster(${CMAKE_SOURCE_DIR}/tests)
    endif()
endfunction()

# Upstream compiles the models in `src` together, and everything else there alone.
function(compile_together target)
    if (TARGET ${target})
        get_target_property(folder ${target} SOURCE_DIR)
        get_target_property(sources ${target} SOURCES)
        foreach(source IN LISTS sources)
            get_filename_component(source ${source} ABSOLUTE BASE_DIR ${folder})
            set_source_files_properties(
                ${source} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION OFF)
        endforeach()
    endif()
endfunction()

# Sources that cannot be compiled with others of their target.
function(compile_alone target)
    if (TARGET ${target})
        get_target_property(folder ${target} SOURCE_DIR)
        list(TRANSFORM ARGN PREPEND ${folder}/)
        set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
endfunction()

if (NOT ESPALIER_REFERENCE)
    cmake_language(DEFER CALL compile_tests_faster)
    return()
endif()
cmake_language(DEFER CALL compile_faster ${CMAKE_SOURCE_DIR})
cmake_language(DEFER CALL compile_together llama)
# It defines a function that llama-graph.cpp defines too.
cmake_language(DEFER CALL compile_alone llama llama-kv-cache-dsv4.cpp)
# It specializes a template that the headers of others instantiate.
cmake_language(DEFER CALL compile_alone llama-common json.cpp)
# They refuse internal headers.
cmake_language(DEFER CALL compile_alone mtmd mtmd-helper.cpp mtmd-helper-gen.cpp)
";

/// Returns CMake's cache entries of a reference build; `file` is the path of `CMAKE`, and `digest` its digest.
#[must_use]
pub fn cache_entries(file: String, digest: String) -> BTreeMap<String, String> {
    BTreeMap::from([(INCLUDE.to_string(), file), (ENTRY.to_string(), digest)])
}

/// Returns whether a package with these `flags` in its manifest is a reference build.
#[must_use]
pub fn is_reference(flags: &BTreeMap<String, String>) -> bool {
    flags.contains_key(ENTRY)
}
