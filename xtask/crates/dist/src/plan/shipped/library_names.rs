//! The names of a library that a package keeps.

/// Returns the name of a file that programs load when they start. CMake creates at most three: the linker's
/// (`libx.so`), the program's (`libx.so.0`, its SONAME) and the file's own (`libx.so.0.25.1`); on macOS the number
/// precedes the extension. Each is longer than the one before; without a linker's name there is only one.
#[must_use]
pub fn asked_for(names: &[String]) -> Option<&String> {
    let mut by_length: Vec<&String> = names.iter().collect();
    by_length.sort_by_key(|name| (name.len(), name.as_str()));
    by_length.get(1).or(by_length.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::asked_for;

    #[test]
    fn the_name_that_programs_ask_for_is_kept() {
        let cases: [(&[&str], &str); 6] = [
            (&["libx.so.0", "libx.so", "libx.so.0.25.1"], "libx.so.0"),
            (&["libx.so", "libx.so.1"], "libx.so.1"),
            (&["libespalier.so"], "libespalier.so"),
            (&["libx.dylib", "libx.0.25.1.dylib", "libx.0.dylib"], "libx.0.dylib"),
            (&["ggml.dll"], "ggml.dll"),
            (&["liby.so.10.1.0", "liby.so", "liby.so.10"], "liby.so.10"),
        ];
        for (names, kept) in cases {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            assert_eq!(asked_for(&names).map(String::as_str), Some(kept), "{names:?}");
        }
        assert_eq!(asked_for(&[]), None);
    }
}
