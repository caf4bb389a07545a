//! The report of a pin move: its effects and its checks, as one Markdown page.

use espalier_core::config::name::Name;
use espalier_core::config::pins::short_name;
use espalier_patches::report::proof::MoveProof;
use espalier_patches::report::proof_text;
use espalier_patches::report::status::ReportedTree;
use espalier_patches::report::status_text::{escape, indented};
use serde::Serialize;

/// Maximum number of lines that the page shows of the difference of one patch: the rest is in the diff of its file.
const DIFFERENCE_LINES: usize = 40;

/// The whole report.
#[derive(Debug, Clone, Serialize)]
pub struct SyncReport {
    /// The upstream's name.
    pub upstream: String,
    /// The pin before.
    pub old: ReportedTree,
    /// The pin after.
    pub new: ReportedTree,
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
    /// The generation that the report is about; `None` for the move of a pin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<GenerationSince>,
    /// Notices of series that the proof does not compare, because they are new or gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uncompared: Vec<String>,
}

/// A generation that is new, or has another tree than before: it is compared with the pin of its patches.
#[derive(Debug, Clone, Serialize)]
pub struct GenerationSince {
    /// Name of its pin.
    pub name: Name,
    /// The commit of the repository with the state before.
    pub since: String,
    /// Its tree there; `None` if it was not there yet.
    pub before: Option<ReportedTree>,
    /// The numbers of patches that apply there by themselves, are replaced and are dropped.
    pub summary: String,
}

/// The effect on one patch.
#[derive(Debug, Clone, Serialize)]
pub struct MovedPatch {
    /// Its file before.
    pub file: String,
    /// Its class at the new pin before it was moved; on a generation, by itself.
    pub class: String,
    /// Its change: `unchanged`, `context only`, `changed`, `dropped`, and whether a sibling makes it.
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
        self.proof.holds() && self.checks.iter().all(|check| check.error.is_none())
    }

    /// Returns a notice if no variant had to pass the gate.
    pub fn ungated(&self) -> Option<&'static str> {
        let words = "Nothing was gated: no variant in `pins.toml` names the one that it is gated against \
                     (`gate = \"VARIANT\"`).";
        self.gated.is_empty().then_some(words)
    }

    /// Notices about a move that holds.
    pub fn notices(&self) -> impl Iterator<Item = String> {
        let uncompared = self.uncompared.iter().cloned();
        self.new.notice().into_iter().chain(uncompared).chain(self.ungated().map(str::to_string))
    }

    /// `llama.cpp: v0.4.0 to v0.5.0`, or `llama.cpp: v0.5.0, a generation of v0.4.0`.
    pub fn title(&self) -> String {
        let (old, new) = (short_name(&self.old.name), short_name(&self.new.name));
        match &self.generation {
            None => format!("{}: {old} to {new}", self.upstream),
            Some(_) => format!("{}: {new}, a generation of {old}", self.upstream),
        }
    }

    /// Renders the page.
    pub fn markdown(&self) -> String {
        self.sections().join("\n")
    }

    /// Renders the page in at most `limit` characters, with what decides first. Sections that do not fit are shortened;
    /// `page` is the file with all of them.
    pub fn excerpt(&self, limit: usize, page: &str) -> String {
        let whole = self.markdown();
        if whole.chars().count() <= limit {
            return whole;
        }
        let [head, trees, patches, proof, checks, differences] = self.sections();
        let note = format!("The whole report is `{page}`: it is longer than the text here may be.\n");
        let mut text = String::new();
        for section in [head, note, trees, checks, patches, proof, differences] {
            let room = limit.saturating_sub(text.chars().count() + 1);
            text += &format!("{}\n", fitting(&section, room));
        }
        text.trim_end().to_string()
    }

    fn sections(&self) -> [String; 6] {
        [
            self.head(),
            self.trees_table(),
            self.patches_table(),
            proof_text::markdown(&self.proof) + &self.uncompared_list(),
            self.checks_table(),
            self.differences(),
        ]
    }

    fn head(&self) -> String {
        let verdict = match (self.passed(), &self.generation) {
            (true, _) => "Everything below holds.",
            (false, None) => "**This move does not hold.**",
            (false, Some(_)) => "**This generation does not hold.**",
        };
        let about = self.generation.as_ref().map(|generation| self.about(generation)).unwrap_or_default();
        format!("# {}\n\n{verdict}\n{about}", self.title())
    }

    /// Describes a generation: its pin, what changed, and its patches.
    fn about(&self, GenerationSince { name, since, before, summary }: &GenerationSince) -> String {
        let base = short_name(&self.old.name);
        let change = match before {
            None => format!("It is new since {since}."),
            Some(before) if before.tree == self.new.tree => {
                format!("Its tree is the one at {since}; the pin of its patches has moved since.")
            }
            Some(before) => {
                format!("At {since} it was {} (tree `{}`).", short_name(&before.name), before.tree)
            }
        };
        format!(
            "\nThe pin `{name}` has the patches of {base} on another upstream tree, and each of them is compared with \
             what it is on {base}. {change} {summary}\n"
        )
    }

    fn uncompared_list(&self) -> String {
        self.uncompared.iter().map(|notice| format!("\n* {}\n", escape(notice))).collect()
    }

    fn trees_table(&self) -> String {
        let columns = match self.generation {
            None => "before | after",
            Some(_) => "on the pin | on the generation",
        };
        let mut text = format!("| tree | {columns} |\n|---|---|---|\n");
        text += &format!("| {} | `{}` | `{}` |\n", self.upstream, self.old.tree, self.new.tree);
        for MovedTree { variant, old, new } in &self.trees {
            text += &format!("| {variant} | `{old}` | `{new}` |\n");
        }
        text + &self.new.notice().map(|notice| format!("\n{notice}\n")).unwrap_or_default()
    }

    fn patches_table(&self) -> String {
        let columns = match self.generation {
            None => "at the new pin | after the move",
            Some(_) => "by itself | on the generation",
        };
        let mut text = format!("## Patches\n\n| patch | {columns} |\n|---|---|---|\n");
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
        let title = match self.generation {
            None => "What the move changed in the patches",
            Some(_) => "What differs in the patches on the generation",
        };
        let mut text = format!("## {title}\n");
        if self.patches.iter().all(|patch| patch.difference.is_empty()) {
            text += "\nLine numbers only.\n";
        }
        for MovedPatch { file, difference, .. } in self.patches.iter().filter(|p| !p.difference.is_empty()) {
            text += &format!(
                "\n<details><summary>{}</summary>\n\n{}\n</details>\n",
                escape(file),
                indented(&beginning(difference))
            );
        }
        text
    }
}

/// Returns a difference, or, if it is long, its first lines.
fn beginning(difference: &str) -> String {
    let lines: Vec<&str> = difference.lines().collect();
    match lines.get(..DIFFERENCE_LINES).filter(|_| lines.len() > DIFFERENCE_LINES) {
        None => difference.to_string(),
        Some(shown) => {
            let more = lines.len() - DIFFERENCE_LINES;
            format!("{}\n... {more} more lines, in the diff of the patch file\n", shown.join("\n"))
        }
    }
}

/// Returns `section`, or, if it is longer than `room`, the lines of its beginning that fit. A part that is folded is left
/// out as a whole: the rest of the text would be in it.
fn fitting(section: &str, room: usize) -> String {
    if section.chars().count() <= room {
        return section.to_string();
    }
    let shown = section.split("\n<details>").next().unwrap_or_default();
    let mut left = room;
    let fits = |line: &&str| {
        let rest = left.checked_sub(line.chars().count());
        left = rest.unwrap_or_default();
        rest.is_some()
    };
    shown.split_inclusive('\n').take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use espalier_core::config::pins::Verification;
    use espalier_patches::report::proof::ProvenSeries;
    use espalier_series::{PatchProof, SeriesProof};

    use super::*;

    fn proof() -> MoveProof {
        let place = |name: &str| ReportedTree {
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
        let place = |name: &str, tree: &str| ReportedTree {
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
            generation: None,
            uncompared: Vec::new(),
        }
    }

    fn on_generation(before: Option<ReportedTree>) -> SyncReport {
        let generation = GenerationSince {
            name: Name::new("v2").unwrap(),
            since: "HEAD~1".into(),
            before,
            summary: "0 of 1 patches apply by themselves. Siblings replace 1 (1 conflict).".into(),
        };
        SyncReport { generation: Some(generation), ..report(None) }
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
    fn a_page_of_a_generation_compares_both_pins() {
        let report = on_generation(None);
        let page = report.markdown();
        for expected in [
            "# hello: v2, a generation of v1\n\nEverything below holds.\n\nThe pin `v2` has the patches of v1 on another",
            " It is new since HEAD~1. 0 of 1 patches apply by themselves. Siblings replace 1",
            "| tree | on the pin | on the generation |",
            "| patch | by itself | on the generation |",
            "## What differs in the patches on the generation",
        ] {
            assert!(page.contains(expected), "no `{expected}` in {page}");
        }
        let place = |tree: &str| ReportedTree { tree: tree.into(), ..report.old.clone() };
        let moved = on_generation(Some(place("99"))).markdown();
        assert!(moved.contains("At HEAD~1 it was v1 (tree `99`)."), "{moved}");
        let stays = on_generation(Some(place("22"))).markdown();
        assert!(stays.contains("the pin of its patches has moved since"), "{stays}");
        let mut broken = report;
        broken.checks[0].error = Some("no".into());
        assert!(broken.markdown().contains("**This generation does not hold.**"));
    }

    #[test]
    fn a_series_without_a_counterpart_is_named() {
        let report = SyncReport { uncompared: vec!["The series of `q` is new".into()], ..report(None) };
        assert!(report.markdown().contains("\n* The series of `q` is new\n"), "{}", report.markdown());
        assert_eq!(report.notices().count(), 1);
    }

    #[test]
    fn an_excerpt_has_what_decides_and_no_open_fold() {
        let mut report = report(None);
        assert_eq!(report.excerpt(60_000, "docs/syncs/v1-to-v2.md"), report.markdown());
        report.patches = vec![report.patches[0].clone(); 2_000];
        let text = report.excerpt(4_000, "docs/syncs/v1-to-v2.md");
        assert!(text.chars().count() <= 4_000, "{}", text.chars().count());
        let whole = "The whole report is `docs/syncs/v1-to-v2.md`";
        for expected in ["Everything below holds.", whole, "| hello | `11` | `22` |", "| lint | ok | 0.0 |"] {
            assert!(text.contains(expected), "no `{expected}` in {text}");
        }
        assert!(!text.contains("<details>"), "{text}");
        assert!(text.contains("| `patches/p/0001-a.patch` | shifted | context only |"), "{text}");
    }

    #[test]
    fn a_page_shows_the_beginning_of_a_long_difference() {
        let mut report = report(None);
        let lines = |count: usize| (0..count).map(|line| format!("+line {line};\n")).collect::<String>();
        report.patches[0].difference = lines(40);
        assert!(report.markdown().contains("    +line 39;\n\n</details>"), "{}", report.markdown());
        report.patches[0].difference = lines(140);
        let page = report.markdown();
        let end = "    +line 39;\n    ... 100 more lines, in the diff of the patch file\n\n</details>";
        assert!(page.contains(end), "{page}");
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
