//! The four required trailers of a patch, and their permitted values.

use super::numerics::{NUMERICS_ALLOWED, Numerics};
use crate::model::patch::DROPPED_BECAUSE;

/// One required trailer.
pub(crate) struct Requirement {
    pub key: &'static str,
    pub may_repeat: bool,
    pub is_valid: fn(&str) -> bool,
    pub allowed: &'static str,
}

pub(crate) const REQUIREMENTS: [Requirement; 4] = [
    Requirement {
        key: "Upstream-Status",
        may_repeat: false,
        is_valid: is_upstream_status,
        allowed: "`Pending`, `Submitted <URL>`, `Inappropriate <why>` or `Backport <commit>`, or as Yocto does, with `[details]`",
    },
    Requirement {
        key: "Drop-when",
        may_repeat: false,
        is_valid: |value| !value.is_empty(),
        allowed: "what must be true upstream for this patch to go",
    },
    Requirement {
        key: "Verified-by",
        may_repeat: true,
        is_valid: |value| !value.is_empty(),
        allowed: "the test or the gate that proves this patch",
    },
    Requirement {
        key: "Numerics",
        may_repeat: false,
        is_valid: |value| Numerics::parse(value).is_some(),
        allowed: NUMERICS_ALLOWED,
    },
];

/// The required trailers with their permitted values, for the message of a new patch.
pub const TRAILER_KEYS: [(&str, &str); 4] = [
    (REQUIREMENTS[0].key, REQUIREMENTS[0].allowed),
    (REQUIREMENTS[1].key, REQUIREMENTS[1].allowed),
    (REQUIREMENTS[2].key, REQUIREMENTS[2].allowed),
    (REQUIREMENTS[3].key, REQUIREMENTS[3].allowed),
];

/// The rule for the trailer of a sibling without a diff. It is not in [`TRAILER_KEYS`]: no other patch has it.
pub(crate) const DROPPED: Requirement = Requirement {
    key: DROPPED_BECAUSE,
    may_repeat: false,
    is_valid: |value| !value.is_empty(),
    allowed: "why the generation does not need this patch, such as the upstream commit that has it",
};

fn is_upstream_status(value: &str) -> bool {
    let (status, detail) = value.split_once(' ').unwrap_or((value, ""));
    if YOCTO_STATES.contains(&status) && is_bracketed(detail) {
        return true;
    }
    match status {
        "Denied" | "Inactive-Upstream" => detail.is_empty(),
        "Pending" => detail.is_empty(),
        "Submitted" => detail.starts_with("https://") && !detail.contains(char::is_whitespace),
        "Inappropriate" => !detail.trim().is_empty(),
        "Backport" => is_commit(detail),
        _ => false,
    }
}

/// The states of <https://docs.yoctoproject.org/contributor-guide/recipe-style-guide.html>, each with details in
/// brackets.
const YOCTO_STATES: [&str; 6] =
    ["Pending", "Submitted", "Inappropriate", "Backport", "Denied", "Inactive-Upstream"];

fn is_bracketed(detail: &str) -> bool {
    let inner = detail.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.is_some_and(|inner| !inner.trim().is_empty())
}

/// Returns whether `detail` is a commit id. Twelve digits are the shortest abbreviation that stays unique in a
/// repository as large as upstream's.
fn is_commit(detail: &str) -> bool {
    (12..=40).contains(&detail.len()) && detail.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::is_upstream_status;

    #[test]
    fn knows_our_states_and_those_of_yocto() {
        let good = [
            "Pending",
            "Submitted https://github.com/ggml-org/llama.cpp/pull/1",
            "Inappropriate fork only",
            "Backport 0123456789ab",
            "Pending [not sent yet]",
            "Submitted [https://lists.example.org/1]",
            "Submitted [mailing list, 2024-05-01]",
            "Inappropriate [oe-core specific]",
            "Backport [https://github.com/a/b/commit/0123456789ab]",
            "Backport [1.2, [PATCH] x]",
            "Denied",
            "Denied [https://github.com/a/b/pull/1]",
            "Inactive-Upstream",
            "Inactive-Upstream [lastcommit: 2015-01-01]",
        ];
        let bad = [
            "",
            "pending",
            "Pending soon",
            "Submitted",
            "Submitted by mail",
            "Inappropriate",
            "Inappropriate  ",
            "Backport",
            "Backport 1234",
            "Backport the fix of 0123456789ab",
            "Denied by them",
            "Accepted",
            "Submitted []",
            "Submitted [ ]",
            "Submitted [x",
            "Pending[x]",
        ];
        assert!(good.iter().all(|value| is_upstream_status(value)));
        for value in bad {
            assert!(!is_upstream_status(value), "{value}");
        }
    }
}
