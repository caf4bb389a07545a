//! The report of a pin move: its effects and its checks, as one Markdown page.

use espalier_core::config::pins::short_name;
use espalier_patches::report::proof::MoveProof;
use espalier_patches::report::proof_text;
use espalier_patches::report::status::Place;
use espalier_patches::report::status_text::{escape, indented};
use serde::Serialize;

/// The whole report.
#[derive(Debug, Clone, Serialize)]
pub struct SyncReport {
    /// The upstream's name.
    pub upstream: String,
    /// The pin before.
    pub old: Place,
    /// The pin after.
    pub new: Place,
    /// Every patch of every series on this pin, parents first.
    pub patches: Vec<MovedPatch>,
    /// Every patch, compared with what it was before the move.
    pub proof: MoveProof,
    /// The final tree of every variant, before and after.
    pub trees: Vec<MovedTree>,
    /// The checks.
    pub checks: Vec<Check>,
    /// The variants that had to pass the gate.
    pub gated: Vec<String>,
}

/// The effect on one patch.
#[derive(Debug, Clone, Serialize)]
pub struct MovedPatch {
    /// Its file before.
    pub file: String,
    /// Its class at the new pin before it was moved.
    pub class: String,
    /// Its change: `unchanged`, `context only`, `changed`, `dropped`.
    pub change: String,
    /// The difference of the two patches, if any.
    pub difference: String,
}

/// The final tree of one variant.
#[derive(Debug, Clone, Serialize)]
pub struct MovedTree {
    /// Variant name.
    pub variant: String,
    /// Its final tree before.
    pub old: String,
    /// Its final tree after.
    pub new: String,
}

/// One check.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// Its duration.
    pub seconds: f64,
    /// The reason if it failed.
    pub error: Option<String>,
}

impl Check {
    /// A check that was not reached.
    pub fn not_reached(name: &str, why: &str) -> Check {
        Check { name: name.to_string(), seconds: 0.0, error: Some(format!("not reached: {why}")) }
    }
}

impl SyncReport {
    /// Whether the pin may move.
    pub fn passed(&self) -> bool {
        self.proof.is_proved() && self.checks.iter().all(|check| check.error.is_none())
    }

    /// Returns a notice if no variant had to pass the gate.
    pub fn ungated(&self) -> Option<&'static str> {
        let words = "Nothing was gated: no variant in `pins.toml` names the one that it is gated against \
                     (`gate = \"VARIANT\"`).";
        self.gated.is_empty().then_some(words)
    }

    /// Notices about a move that holds.
    pub fn notices(&self) -> impl Iterator<Item = String> {
        self.new.notice().into_iter().chain(self.ungated().map(str::to_string))
    }

    /// `llama.cpp: v0.4.0 to v0.5.0`.
    pub fn title(&self) -> String {
        let (old, new) = (short_name(&self.old.name), short_name(&self.new.name));
        format!("{}: {old} to {new}", self.upstream)
    }

    /// Renders the page.
    pub fn markdown(&self) -> String {
        let verdict = if self.passed() { "Everything below holds." } else { "**This move does not hold.**" };
        [
            format!("# {}\n\n{verdict}\n", self.title()),
            self.trees_table(),
            self.patches_table(),
            proof_text::markdown(&self.proof),
            self.checks_table(),
            self.differences(),
        ]
        .join("\n")
    }

    fn trees_table(&self) -> String {
        let mut text = String::from("| tree | before | after |\n|---|---|---|\n");
        text += &format!("| {} | `{}` | `{}` |\n", self.upstream, self.old.tree, self.new.tree);
        for MovedTree { variant, old, new } in &self.trees {
            text += &format!("| {variant} | `{old}` | `{new}` |\n");
        }
        text + &self.new.notice().map(|notice| format!("\n{notice}\n")).unwrap_or_default()
    }

    fn patches_table(&self) -> String {
        let mut text =
            String::from("## Patches\n\n| patch | at the new pin | after the move |\n|---|---|---|\n");
        for MovedPatch { file, class, change, .. } in &self.patches {
            text += &format!("| `{file}` | {class} | {change} |\n");
        }
        text
    }

    fn checks_table(&self) -> String {
        let mut text = String::from("## Checks\n\n| check | result | seconds |\n|---|---|--:|\n");
        for Check { name, seconds, error } in &self.checks {
            let result = if error.is_some() { "**failed**" } else { "ok" };
            text += &format!("| {name} | {result} | {seconds:.1} |\n");
        }
        if let Some(ungated) = self.ungated() {
            text += &format!("\n{ungated}\n");
        }
        for Check { name, error, .. } in &self.checks {
            if let Some(error) = error {
                text += &format!("\n{name}:\n\n{}", indented(error));
            }
        }
        text
    }

    fn differences(&self) -> String {
        let mut text = String::from("## What the move changed in the patches\n");
        if self.patches.iter().all(|patch| patch.difference.is_empty()) {
            text += "\nLine numbers only.\n";
        }
        for MovedPatch { file, difference, .. } in self.patches.iter().filter(|p| !p.difference.is_empty()) {
            text += &format!(
                "\n<details><summary>{}</summary>\n\n{}\n</details>\n",
                escape(file),
                indented(difference)
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use espalier_core::config::pins::Verification;
    use espalier_patches::report::proof::ProvenSeries;
    use espalier_series::{PatchProof, SeriesProof};

    use super::*;

    fn proof() -> MoveProof {
        let place = |name: &str| Place {
            name: name.into(),
            tree: "11".into(),
            verification: Verification::default(),
        };
        let name = vec!["0001-a.patch".to_string()];
        let patch = PatchProof { old: name.clone(), new: name, findings: Vec::new() };
        let proof = SeriesProof { patches: vec![patch], ..SeriesProof::default() };
        let series = ProvenSeries { variant: "p".into(), old: place("v1"), new: place("v2"), proof };
        MoveProof { old: "v1".into(), new: "v2".into(), series: vec![series], ..MoveProof::default() }
    }

    fn report(error: Option<&str>) -> SyncReport {
        let place = |name: &str, tree: &str| Place {
            name: name.into(),
            tree: tree.into(),
            verification: Verification::default(),
        };
        SyncReport {
            upstream: "hello".into(),
            old: place("v1", "11"),
            new: place("v2", "22"),
            patches: vec![MovedPatch {
                file: "patches/p/0001-a.patch".into(),
                class: "shifted".into(),
                change: "context only".into(),
                difference: "-@@ -1 +1 @@\n+@@ -3 +3 @@\n".into(),
            }],
            proof: proof(),
            trees: vec![MovedTree { variant: "p".into(), old: "33".into(), new: "44".into() }],
            checks: vec![Check { name: "lint".into(), seconds: 0.04, error: error.map(String::from) }],
            gated: vec!["p".into()],
        }
    }

    #[test]
    fn a_page_says_what_moved_and_how_it_was_checked() {
        insta::assert_snapshot!(report(None).markdown(), @"
        # hello: v1 to v2

        Everything below holds.

        | tree | before | after |
        |---|---|---|
        | hello | `11` | `22` |
        | p | `33` | `44` |

        ## Patches

        | patch | at the new pin | after the move |
        |---|---|---|
        | `patches/p/0001-a.patch` | shifted | context only |

        ## Proof of the move

        The move from v1 to v2 is proved: the changes of 1 patch are the same on either base.

        p, from v1 to v2:

        | patch | change on the new base |
        |---|---|
        | `0001-a.patch` | the same |

        ## Checks

        | check | result | seconds |
        |---|---|--:|
        | lint | ok | 0.0 |

        ## What the move changed in the patches

        <details><summary>patches/p/0001-a.patch</summary>

            -@@ -1 +1 @@
            +@@ -3 +3 @@

        </details>
        ");
    }

    #[test]
    fn a_page_says_that_the_new_tree_is_unverified() {
        let mut report = report(None);
        assert_eq!(report.notices().count(), 0);
        report.new.verification = Verification::Unverified;
        let notice = "unverified: the tree id of v2 is that of unpacked files";
        assert!(report.markdown().contains(notice), "{}", report.markdown());
        assert!(report.notices().all(|words| words.starts_with(notice)));
        assert_eq!(report.notices().count(), 1);
    }

    #[test]
    fn a_page_says_that_nothing_was_gated() {
        let ungated = SyncReport { gated: Vec::new(), ..report(None) };
        assert!(ungated.markdown().contains("Nothing was gated"), "{}", ungated.markdown());
        assert!(!report(None).markdown().contains("gated"));
    }

    #[test]
    fn a_failed_check_or_a_move_that_is_not_proved_holds_the_pin() {
        assert!(report(None).passed());
        assert!(!report(Some("no")).passed());
        let mut unproved = report(None);
        unproved.proof.stale.push("docs/syncs/v1-to-v2.toml: no difference `doubled` of a.c".into());
        assert!(!unproved.passed());
        assert!(unproved.markdown().contains("**This move does not hold.**"));
        assert!(unproved.markdown().contains("no difference `doubled` of a.c"));
    }
}
