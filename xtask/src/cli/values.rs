//! Types of argument values.

/// Makes a path relative to the current folder absolute, because commands resolve relative paths against the root;
/// keeps a URL.
#[must_use]
pub fn absolute(path: String) -> String {
    if path.contains("://") || path.starts_with("git@") {
        return path;
    }
    std::path::absolute(&path).map_or(path, |path| path.display().to_string())
}
