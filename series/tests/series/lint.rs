//! Rules for the patches of a series.

use espalier_series::{
    LintRule, LintRules, lint_patch, parse, series_entry, series_order, slug_fits, slug_from_subject,
};

use crate::random::Random;
use crate::support::create;

const TRAILERS: &str = "Upstream-Status: Pending\nDrop-when: upstream has it\n\
                        Verified-by: cargo test\nVerified-by: gate\nNumerics: identical\n";

fn text(subject: &str, trailers: &str) -> String {
    format!(
        "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n\
         From: A <a@b>\nDate: Thu, 1 Jan 2026 00:00:00 +0000\nSubject: [PATCH] {subject}\n\nWhy.\n\n{trailers}---\n\n{}",
        create("a")
    )
}

fn findings(name: &str, text: &str) -> Vec<(LintRule, Option<usize>)> {
    let patch = parse(name, text.as_bytes()).unwrap();
    let findings = lint_patch(&patch, text.as_bytes(), &LintRules::default());
    findings.iter().map(|finding| (finding.rule, finding.line)).collect()
}

#[test]
fn a_good_patch_has_no_findings() {
    assert!(findings("0001-add-a.patch", &text("server: add a", TRAILERS)).is_empty());
}

#[test]
fn each_rule_can_be_broken() {
    let good = text("server: add a", TRAILERS);
    let name = "0001-add-a.patch";
    let cases = [
        ("0001-add-b.patch", good.clone(), (LintRule::SlugUnlikeSubject, None)),
        ("1-add-a.patch", good.clone(), (LintRule::FileName, None)),
        (name, text(&format!("add a {}", "x".repeat(67)), TRAILERS), (LintRule::SubjectTooLong, Some(4))),
        (name, good.replace("Pending", "Soon"), (LintRule::TrailerValue, Some(8))),
        (name, good.replace("identical", "same"), (LintRule::TrailerValue, Some(12))),
        (name, good.replace("Drop-when: upstream has it\n", ""), (LintRule::TrailerMissing, None)),
        (
            name,
            good.replace("Numerics", "Upstream-Status: Pending\nNumerics"),
            (LintRule::TrailerTwice, Some(12)),
        ),
        (name, format!("{good}-- \n2.47"), (LintRule::NoFinalNewline, Some(23))),
    ];
    for (name, text, expected) in cases {
        assert_eq!(findings(name, &text), [expected], "{name}\n{text}");
    }
}

#[test]
fn without_trailers_all_four_are_missing() {
    let rules = findings("0001-add-a.patch", &text("add a", ""));
    assert_eq!(rules, [(LintRule::TrailerMissing, None); 4]);
}

/// For any subject, the generated file name is well formed and passes lint: otherwise `lint --fix` would rename a patch
/// to a name that lint rejects.
#[test]
fn generated_slugs_are_accepted() {
    let long = "x".repeat(60);
    let pieces = [
        "server",
        "Add",
        "KV",
        "2",
        "patch",
        "修正する",
        "é",
        "...",
        ".",
        "_",
        "-",
        "--",
        ":",
        "/",
        " ",
        "  ",
        "\t",
        "\"",
        "[v2]",
        "\u{301}",
        "İ",
        &long,
    ];
    let mut random = Random::new(7);
    let mut subjects: Vec<String> = ["", "修正する", "...", "-", &long].map(str::to_owned).to_vec();
    for _ in 0..5_000 {
        let length = 1 + random.below(8);
        subjects.push((0..length).map(|_| *random.pick(&pieces)).collect());
    }
    for subject in subjects {
        let name = format!("0001-{}.patch", slug_from_subject(&subject));
        assert!(series_entry(&name).is_some(), "{name} for {subject:?}");
        assert!(series_order(&[&name]).is_ok(), "{name} for {subject:?}");
        assert!(slug_fits(&name, &subject), "{name} for {subject:?}");
        assert!(name.len() <= "0001-.patch".len() + 52, "{name} for {subject:?}");
    }
    assert!(!slug_fits("0001-add-b.patch", "修正する"));
    assert!(!slug_fits("0001-patch.patch", "server: add b"));
}
