//! Reference builds: what the gate compares with. They compute with the same instructions as the variant that is shipped,
//! and everything else is compiled at a lower level, which takes little more than half of the time.

use std::collections::BTreeMap;

/// The cache entry that marks such a build, in CMake and in the manifest.
const ENTRY: &str = "ESPALIER_REFERENCE";

/// Name of the file with `CMAKE`, in the build folder.
pub const FILE: &str = "espalier-reference.cmake";

/// Read by CMake after each `project()`; the last call in upstream's top folder lowers the level. A compiler uses the last
/// level that it is given, and logits come from `ggml` and `src` alone.
pub const CMAKE: &str = "\
# Compiles everything but ggml and libllama at -O1, for a build that is compared and never timed.
# Names the entry, so that CMake does not warn of one that is not used.
set(ESPALIER_REFERENCE ${ESPALIER_REFERENCE})
if (NOT CMAKE_CURRENT_SOURCE_DIR STREQUAL CMAKE_SOURCE_DIR OR CMAKE_VERSION VERSION_LESS 3.19 OR MSVC)
    return()
endif()

function(compile_reference_faster folder)
    get_property(subfolders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
    foreach(subfolder IN LISTS subfolders)
        if (NOT subfolder MATCHES \"^${CMAKE_SOURCE_DIR}/(ggml|src)(/|$)\")
            compile_reference_faster(${subfolder})
        endif()
    endforeach()
    get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
        get_target_property(type ${target} TYPE)
        if (type MATCHES \"LIBRARY|EXECUTABLE\" AND NOT type STREQUAL \"INTERFACE_LIBRARY\")
            target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C,CXX>:-O1>)
        endif()
    endforeach()
endfunction()

cmake_language(DEFER CALL compile_reference_faster ${CMAKE_SOURCE_DIR})
";

/// CMake's cache entries of such a build; `file` is where `CMAKE` lies.
#[must_use]
pub fn cache_entries(file: String) -> BTreeMap<String, String> {
    BTreeMap::from([("CMAKE_PROJECT_INCLUDE".to_string(), file), (ENTRY.to_string(), "ON".to_string())])
}

/// Whether a package with these `flags` of its manifest is one.
#[must_use]
pub fn is_reference(flags: &BTreeMap<String, String>) -> bool {
    flags.contains_key(ENTRY)
}
