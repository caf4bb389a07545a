//! References to upstream commits as typed: a name or an id, and steps back from there, such as `v1.0~3`.
//!
//! The text is untrusted and is passed to git: anything that git could interpret as an option, a range, a path or a
//! search is rejected here.

use std::fmt;

use espalier_series::ObjectId;

use super::pins::{Revision, is_ref_name};
use crate::error::{Error, Result};

/// A checked reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    text: String,
    /// Length of the name, in bytes.
    name_length: usize,
    /// Steps back from the name, in order.
    pub steps: Vec<Step>,
}

/// One step back in history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `~N`: follow N first parents.
    FirstParents(usize),
    /// `^N`: the parent with this number, from 1.
    Parent(usize),
}

/// More steps than there are between any two releases; a larger number is a mistake.
const STEPS_LIMIT: usize = 100_000;

impl Reference {
    /// Parses the value of `--to` or `--tip`. `tags/NAME` means `refs/tags/NAME`, as in git.
    ///
    /// # Errors
    ///
    /// When it is not a name or an id, optionally followed by `~N` or `^N`.
    pub fn parse(text: &str) -> Result<Reference> {
        let typed = text;
        let text = if typed.starts_with("tags/") { format!("refs/{typed}") } else { typed.to_string() };
        let name_length = text.find(['~', '^']).unwrap_or(text.len());
        let (name, steps) = text.split_at(name_length);
        match read_steps(steps).filter(|_| is_ref_name(name)) {
            Some(steps) => Ok(Reference { name_length, steps, text }),
            None => {
                Err(Error::usage(format!("`{}` is not a tag, a branch or a commit id", typed.escape_debug()))
                    .hint("name one, perhaps with steps back: v1.0, main~3, 0aceb8d1f2a3, main^2"))
            }
        }
    }

    /// The tag, branch or id from which the steps start.
    pub fn name(&self) -> &str {
        self.text.get(..self.name_length).unwrap_or_default()
    }

    /// The whole reference as a pin or a mirror names it: without `refs/tags/`.
    pub fn release(&self) -> &str {
        self.text.strip_prefix("refs/tags/").unwrap_or(&self.text)
    }

    /// The commit, when the name is a full id.
    pub fn full_id(&self) -> Option<ObjectId> {
        self.name().parse().ok()
    }

    /// The name, when it can be an abbreviated id. It may still be a tag, such as `b8390`.
    pub fn short_id(&self) -> Option<&str> {
        let name = self.name();
        let is_short = (4..40).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_short.then_some(name)
    }

    /// Returns the same steps back from another name.
    ///
    /// # Errors
    ///
    /// When it is not a name.
    pub fn stepping_from(&self, name: &str) -> Result<Reference> {
        Reference::parse(&format!("{name}{}", self.text.get(self.name_length..).unwrap_or_default()))
    }

    /// Number of commits that the history needs to contain all steps, the start included.
    pub fn depth(&self) -> usize {
        let length = |step: &Step| match step {
            Step::FirstParents(count) => *count,
            Step::Parent(_) => 1,
        };
        1 + self.steps.iter().map(length).sum::<usize>()
    }

    /// The tag for a pin, when `ref_name`, the ref under which the commit was found, is a tag and there are no steps.
    pub fn as_tag(&self, ref_name: &str) -> Option<Revision> {
        let tag = ref_name.strip_prefix("refs/tags/").filter(|_| self.name_length == self.text.len());
        tag.and_then(Revision::parse).filter(|revision| matches!(revision, Revision::Tag(_)))
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

/// Parses steps such as `~3^2~`; `None` for anything else.
fn read_steps(mut text: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut length = 0;
    while let Some(kind) = text.chars().next() {
        let rest = text.get(1..)?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, next) = rest.split_at(end);
        let count: usize = if digits.is_empty() { 1 } else { digits.parse().ok()? };
        length += count;
        match kind {
            '~' => steps.push(Step::FirstParents(count)),
            '^' if count > 0 => steps.push(Step::Parent(count)),
            '^' => {}
            _ => return None,
        }
        if length > STEPS_LIMIT {
            return None;
        }
        text = next;
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_steps() {
        let read = |text: &str| Reference::parse(text).unwrap();
        assert_eq!(read("v1.0").steps, []);
        let far = read("release/v1.0~3^2~^");
        assert_eq!(far.name(), "release/v1.0");
        let steps = [Step::FirstParents(3), Step::Parent(2), Step::FirstParents(1), Step::Parent(1)];
        assert_eq!((far.steps.as_slice(), far.depth()), (&steps[..], 7));
        assert_eq!(far.stepping_from("v2").unwrap().to_string(), "v2~3^2~^");
        assert_eq!(read("b8390").short_id(), Some("b8390"));
        assert_eq!(read("b8390^0").steps, []);
        assert_eq!(read("v1.0").short_id(), None);
        assert!(read(&"ab".repeat(20)).full_id().is_some());
        assert_eq!(read("v1").as_tag("refs/tags/v1"), Revision::parse("v1"));
        assert_eq!(read("v1~1").as_tag("refs/tags/v1"), None);
        assert_eq!(read("v1").as_tag("refs/heads/v1"), None);
        for text in ["tags/v1+2", "refs/tags/v1+2"] {
            assert_eq!((read(text).name(), read(text).release()), ("refs/tags/v1+2", "v1+2"));
            assert_eq!(read(text).as_tag("refs/tags/v1+2"), Revision::parse("v1+2"));
        }
    }

    #[test]
    fn references_that_git_could_misread_are_refused() {
        let hostile = [
            "",
            "-x",
            "--upload-pack=touch x",
            "a b",
            "a:b",
            ":/fix",
            "HEAD:README",
            "main@{1}",
            "@{-1}",
            "a..b",
            "../x",
            "v1^{tree}",
            "v1^{/fix}",
            "v1^@",
            "v1^!",
            "v1~x",
            "v1~999999999999999999999",
            "v1~100001",
            "v1\nv2",
            "v1\u{1b}[2J",
            "~1",
            "a*",
            "a?",
            "a[b",
            "a\\b",
            "$(x)",
            "`x`",
            "é",
        ];
        for text in hostile {
            let error = Reference::parse(text).expect_err(text).to_string();
            assert!(!error.contains('\u{1b}'), "{error:?}");
        }
    }
}
