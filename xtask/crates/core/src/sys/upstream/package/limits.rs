//! Limits of the content of packages, and the errors for what is rejected.

use crate::error::{Error, Result};

/// The reason to reject anything but files and folders.
pub(super) const LINK: &str = "is a link, a device or a sparse file";

/// Adds `more` to `used`; an error if that exceeds `limit`.
pub(super) fn add(name: &str, used: &mut u64, more: u64, limit: u64, what: &str) -> Result<()> {
    *used = used.saturating_add(more);
    if *used <= limit {
        return Ok(());
    }
    Err(rejected(name, &format!("exceeds a limit: {used} {what}, expected at most {limit}")))
}

/// Returns the error for an entry `name` that the package should not have.
pub(super) fn rejected(name: &str, why: &str) -> Error {
    Error::no(format!("`{name}` in the package {why}")).hint(
        "do not trust this version of the package: remove it from `versions` and `sha256` in `pins.toml`",
    )
}
