//! What a person calls an upstream commit: a name or an id, and steps back from there, such as `v1.0~3`.
//!
//! The text comes from outside and goes to git: whatever git could take for an option, a range, a path or a search is
//! refused here.

use std::fmt;

use super::pins::{Revision, is_ref_name};
use crate::error::{Error, Result};
use crate::series::ObjectId;

/// A checked reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    text: String,
    /// How much of the text is the name.
    name_length: usize,
    /// Steps back from there, in order.
    pub steps: Vec<Step>,
}

/// One step back in history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `~N`: so many first parents.
    FirstParents(usize),
    /// `^N`: the parent with this number, from 1.
    Parent(usize),
}

/// More steps than any release is away; a number beyond is a mistake.
const STEPS_LIMIT: usize = 100_000;

impl Reference {
    /// Reads what stands behind `--to` or `--tip`. `tags/NAME`, as git also takes it, is `refs/tags/NAME`.
    ///
    /// # Errors
    ///
    /// When it is not a name or an id with `~N` or `^N` behind it.
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

    /// The tag, branch or id that it starts from.
    pub fn name(&self) -> &str {
        self.text.get(..self.name_length).unwrap_or_default()
    }

    /// The whole of it as a pin or a mirror would call it: without `refs/tags/`.
    pub fn release(&self) -> &str {
        self.text.strip_prefix("refs/tags/").unwrap_or(&self.text)
    }

    /// The commit, when it is written out whole.
    pub fn full_id(&self) -> Option<ObjectId> {
        self.name().parse().ok()
    }

    /// The name, when it can be the beginning of an id. It may be a tag all the same: `b8390` is one.
    pub fn short_id(&self) -> Option<&str> {
        let name = self.name();
        let is_short = (4..40).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_short.then_some(name)
    }

    /// How many commits a history must have to hold all the steps, itself included.
    pub fn depth(&self) -> usize {
        let length = |step: &Step| match step {
            Step::FirstParents(count) => *count,
            Step::Parent(_) => 1,
        };
        1 + self.steps.iter().map(length).sum::<usize>()
    }

    /// What a pin can call it when `ref_name` is the ref that it was found under.
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

/// `~3^2~` as data; nothing for anything else.
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
    fn what_git_could_take_for_something_else_is_refused() {
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
