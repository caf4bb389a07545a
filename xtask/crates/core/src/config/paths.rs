//! Parts of a path in a project, which has `/` on every system.

/// Returns the last part of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the folder of a path; empty without one.
pub fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the number of a patch: `0001` of `patches/paged/0001-slug.patch`.
pub fn patch_number(path: &str) -> &str {
    let name = file_name(path);
    name.split('-').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::{file_name, folder, patch_number};

    #[test]
    fn a_path_has_a_folder_and_a_name_with_the_number() {
        let path = "patches/paged/0001-slug.patch";
        assert_eq!((folder(path), file_name(path)), ("patches/paged", "0001-slug.patch"));
        assert_eq!((folder("a.c"), file_name("a.c")), ("", "a.c"));
        assert_eq!((patch_number(path), patch_number("0002.patch")), ("0001", "0002.patch"));
    }
}
