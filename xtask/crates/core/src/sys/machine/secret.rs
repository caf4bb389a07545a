//! A token: it is never shown, however it is printed.

use std::fmt;

use crate::error::{Error, Result};

/// Placeholder for the secret in output.
const HIDDEN: &str = "***";

/// Text that must never be printed.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Takes a token from the value of an environment variable.
    ///
    /// # Errors
    ///
    /// When it contains anything but visible ASCII: it could end the line of the header that it is put into.
    pub fn new(text: &str) -> Result<Secret> {
        let text = text.trim();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::usage("the token for GitHub is empty or not visible ASCII"));
        }
        Ok(Secret(text.to_string()))
    }

    /// Returns the text itself, for the one place that sends it.
    pub(in crate::sys) fn reveal(&self) -> &str {
        &self.0
    }

    /// Replaces the secret in `text`, for output of other programs.
    pub fn hide_in(&self, text: &str) -> String {
        text.replace(&self.0, HIDDEN)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(HIDDEN)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(HIDDEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_never_shown() {
        let secret = Secret::new(" ghs_abc\n").unwrap();
        assert_eq!(format!("{secret} {secret:?} {:#?}", Some(&secret)), "*** *** Some(\n    ***,\n)");
        assert_eq!(secret.hide_in("got ghs_abc!"), "got ***!");
        assert_eq!(secret.reveal(), "ghs_abc");
    }

    #[test]
    fn values_that_would_end_a_header_are_refused_and_not_shown() {
        let error = Secret::new("ghs\r\nHost: x").unwrap_err().to_string();
        assert!(!error.contains("ghs"), "{error}");
        assert!(Secret::new("").is_err());
    }
}
