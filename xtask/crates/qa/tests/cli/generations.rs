//! A series on several upstream trees: patches are replayed, and siblings take the place of those that cannot be.

use super::support::editing::{commit_project, edit_folder};
use super::support::generations::{Generations, PATCHES};
use super::support::moving::greet;
use super::support::{files, git};

fn sibling(at: usize, generation: &str) -> String {
    format!("{}@{generation}.patch", PATCHES[at])
}

#[test]
fn patches_are_replayed_on_a_generation() {
    let generations = Generations::new();
    let report = generations.project.run(&["--json", "apply", "--variant", "paged-v1-1"]).success().json();
    assert_eq!(report["patches"].as_array().unwrap().len(), 3);
    let greeting = generations.file("v1-1", "src/greet.c");
    assert!(
        greeting.starts_with("// A new first line.") && greeting.contains("\"hello there, dear\""),
        "{greeting}"
    );
    let lock = generations.project.read("espalier.lock");
    let tree = super::support::upstream::Upstream::shared().tree();
    assert!(lock.contains(&format!("made-for = \"{tree}\"")) && !lock.contains("siblings"), "{lock}");
    // The second run has nothing to do, and the default variant is as it was.
    let again = generations.project.run(&["--json", "apply", "--variant", "paged-v1-1"]).success().json();
    assert_eq!((&again["unchanged"], &again["tree"]), (&true.into(), &report["tree"]));
    assert!(!generations.project.run(&["apply"]).success().stdout.is_empty());
    generations.rebase("v1-1", &[]).success();
    assert!(generations.siblings().is_empty());
}

#[test]
fn a_patch_that_needs_a_sibling_is_named_with_the_command_that_makes_it() {
    let generations = Generations::new();
    generations.project.run(&["apply", "--check", "--variant", "paged-v2"]).code(1).says(&[
        "the generation v2 needs siblings: 2 of 3 patches do not apply to hello v2.0 by themselves, 1 depends on them: ",
        "patches/paged/0001-greet-more-warmly.patch: conflict",
        "src/greet.c: upstream changed the same lines",
        "patches/paged/0002-say-what-is-counted.patch: upstreamed",
        "next: make them: cargo xtask rebase --variant paged-v2    # it stops at each of these patches, and where one",
    ]);
    let output = generations.rebase("v2", &["--dry-run"]).code(4);
    let headline = "paged-v2: 0 of 3 patches apply to hello v2.0 by themselves, 0 are replaced by siblings, 2 wait, \
                    1 depends on them\n";
    assert!(output.stdout.starts_with(headline), "{output}");
    assert!(output.stdout.contains("it needs 0001-greet-more-warmly.patch first"), "{output}");
    let json = generations.rebase("v2", &["--dry-run", "--json"]).code(4).json();
    let results = json["patches"].as_array().unwrap().iter().map(|patch| patch["result"].as_str().unwrap());
    assert_eq!(results.collect::<Vec<_>>(), ["waits", "waits", "blocked"]);
    generations.project.run(&["lock"]).code(1);
}

/// As the rebase that it tries: what the options decide does not wait.
#[test]
fn a_dry_run_follows_the_choices_about_upstreamed_patches() {
    let generations = Generations::new();
    let output = generations.rebase("v2", &["--dry-run", "--drop-upstreamed"]).code(4);
    let dropped = "  patches/paged/0002-say-what-is-counted.patch: dropped, upstream has it\n";
    assert!(
        output.stdout.contains(dropped)
            && !output.stdout.contains("0002-say-what-is-counted.patch: upstreamed")
    );
    let next = "next: cargo xtask rebase --variant paged-v2 --drop-upstreamed    # it stops at each";
    assert!(output.stdout.contains(next), "{output}");
    let arguments = ["--json", "rebase", "--variant", "paged-v2", "--dry-run", "--drop-upstreamed"];
    let json = generations.project.run(&arguments).code(4).json();
    assert_eq!(json["patches"][1]["result"], "dropped", "{json}");
}

#[test]
fn siblings_are_made_where_they_are_needed() {
    let generations = Generations::with_siblings();
    assert_eq!(generations.siblings(), [0, 1, 2].map(|at| sibling(at, "v2")));
    let dropped = generations.project.read(&format!("patches/paged/{}", sibling(1, "v2")));
    assert!(dropped.contains("\nDropped-because: ") && !dropped.contains("diff --git"), "{dropped}");
    assert_eq!(generations.file("v2", "src/greet.c"), greet("hi there, dear"));
    generations.project.run(&["lock"]).success();
    generations.project.run(&["--locked", "--offline", "lock", "--check"]).success();
    let lock = generations.project.read("espalier.lock");
    assert!(lock.contains("patch = \"patches/paged/0002-say-what-is-counted.patch\""), "{lock}");
    generations.project.run(&["lint"]).success();
    let output = generations.rebase("v2", &[]).success();
    assert!(output.stdout.contains("there is nothing to rebase"), "{output}");
    assert!(!generations.work("v2").exists());
    // The other generation, and the pin itself, are not affected.
    assert!(generations.file("v1-1", "src/greet.c").contains("\"hello there, dear\""));
}

#[test]
fn the_proof_compares_both_pins() {
    let generations = Generations::with_siblings();
    let output = generations.project.run(&["prove", "--generation", "v2"]).success();
    assert!(
        output.stdout.starts_with("the move from the pin hello to the generation v2 is proved"),
        "{output}"
    );
    let json = generations.project.run(&["--json", "prove", "--generation", "v2"]).success().json();
    assert_eq!(json["intended_in"][0], "docs/syncs/v1.0-to-v2.0.toml");
    generations.project.run(&["prove", "--generation", "v3"]).code(2).says(&["use one of: v1-1, v2"]);
    generations.project.run(&["prove", "--generation", "v2", "HEAD"]).code(2);
}

/// Returns an entry with a reason for each difference of a generation that needs one.
fn reasons(generations: &Generations, generation: &str) -> String {
    let json = generations.project.run(&["--json", "prove", "--generation", generation]).code(1).json();
    let series = &json["series"][0];
    let patches = series["patches"].as_array().unwrap().iter();
    let findings = patches.flat_map(|patch| patch["findings"].as_array().unwrap());
    let findings = findings.chain(series["whole"].as_array().unwrap());
    let accounted_for = ["context-only", "resolved-by-hand", "upstreamed"];
    let is_open = |finding: &&serde_json::Value| !accounted_for.contains(&finding["class"].as_str().unwrap());
    let entry = |finding: &serde_json::Value| {
        let (class, path, digest) = (&finding["class"], &finding["path"], &finding["digest"]);
        format!("[[intended]]\nclass = {class}\npath = {path}\nline = {digest}\nwhy = \"so\"\n")
    };
    findings.filter(is_open).map(entry).collect()
}

/// A sibling differs from its patch after each rebase, for the same reason.
#[test]
fn a_rebase_takes_the_reasons_of_intended_differences() {
    const REASONS: &str = "docs/syncs/v1.0-to-v1.1.toml";
    let generations = Generations::new();
    generations.rebase("v1-1", &["--edit", "2"]).code(4);
    let work = generations.work("v1-1");
    files::edit(&work.join("src/count.c"), "not letters", "nor letters");
    git::git(&work, &["add", "src/count.c"]);
    let unproved = "warning: patches make other changes on the generation v1-1, and nothing accounts for them; \
                    `prove --generation v1-1` lists them\n";
    let output = generations.rebase("v1-1", &["--continue"]).success();
    assert!(output.stdout.contains(unproved), "{output}");
    let rebase_again = || {
        generations.rebase("v1-1", &["--edit", "1"]).code(4);
        generations.rebase("v1-1", &["--continue"]).success()
    };
    let reasons = reasons(&generations, "v1-1");
    generations.project.write(REASONS, &reasons);
    generations.project.run(&["prove", "--generation", "v1-1"]).success();
    let output = rebase_again();
    assert!(!output.stdout.contains("warning: "), "{output}");
    // One reason too many could hide another difference.
    generations.project.write(REASONS, reasons.repeat(2));
    generations.project.run(&["prove", "--generation", "v1-1"]).code(1);
    let output = rebase_again();
    let stale = "warning: `prove` refuses these entries about intended differences:\n  \
                 docs/syncs/v1.0-to-v1.1.toml: no difference `";
    assert!(output.stdout.contains(stale) && !output.stdout.contains(unproved), "{output}");
    // Entries that cannot be read do not hold the rebase up.
    generations.project.write(REASONS, reasons.replace("why = \"so\"", "why = \"\""));
    let output = rebase_again().says(&["warning: invalid `docs/syncs/v1.0-to-v1.1.toml`"]);
    assert!(output.stdout.contains(unproved), "{output}");
}

#[test]
fn a_patch_can_be_dropped_and_its_reason_has_to_be_given() {
    let generations = Generations::new();
    generations.rebase("v2", &["--drop-upstreamed"]).code(4);
    generations.rebase("v2", &["--skip"]).code(4);
    let output = generations.rebase("v2", &["--skip"]).success();
    assert!(
        output.stdout.contains("give the reason in patches/paged/0001-greet-more-warmly@v2.patch"),
        "{output}"
    );
    assert_eq!(generations.file("v2", "src/greet.c"), greet("hi"));
    let output = generations.project.run(&["lint"]).code(1);
    assert_eq!(output.stdout.matches("`Dropped-because:` still says `TODO`").count(), 2, "{output}");
    for at in [0, 2] {
        let path = format!("patches/paged/{}", sibling(at, "v2"));
        generations.project.edit(&path, "because: TODO", "because: the greeting is another one");
    }
    // The name is that of the patch, the subject is free.
    generations.project.edit(
        &format!("patches/paged/{}", sibling(0, "v2")),
        "Greet more warmly",
        "Greet as upstream does",
    );
    generations.project.run(&["lint"]).success();
    // The reason is a part of what is locked.
    generations.project.run(&["lock", "--check"]).code(1).says(&["0001-greet-more-warmly@v2.patch sha256"]);
    generations.project.run(&["lock"]).success();
    let output = generations.project.run(&["prove", "--generation", "v2"]).success();
    assert!(output.stdout.contains("but for"), "{output}");
}

#[test]
fn a_sibling_can_do_something_else_and_is_gone_once_it_does_not() {
    let generations = Generations::new();
    generations.rebase("v1-1", &["--edit", "1"]).code(4).says(&["applies, and waits to be edited"]);
    generations.rebase("v1-1", &["--continue"]).success();
    assert!(generations.siblings().is_empty(), "the replay gives the same tree");
    generations.rebase("v1-1", &["--edit", "2"]).code(4);
    let work = generations.work("v1-1");
    files::edit(&work.join("src/count.c"), "not letters", "nor letters");
    git::git(&work, &["add", "src/count.c"]);
    let output = generations.rebase("v1-1", &["--continue"]).success();
    let headline = "the generation v1-1 (paged): 3 of 3 patches, from hello v1.0, now on v1.1\n";
    let difference = format!("\npatches/paged/{}: changed\n", sibling(1, "v1-1"));
    assert!(output.stdout.starts_with(headline) && output.stdout.contains(&difference), "{output}");
    assert_eq!(generations.siblings(), [sibling(1, "v1-1")]);
    assert!(generations.file("v1-1", "src/count.c").contains("nor letters"));
    generations.project.run(&["lint"]).success();
    // Only what is new is shown.
    generations.rebase("v1-1", &["--edit", "1"]).code(4);
    let output = generations.rebase("v1-1", &["--continue"]).success();
    assert!(output.stdout.starts_with(headline) && !output.stdout.contains(&difference), "{output}");
}

#[test]
fn lint_refuses_siblings_that_are_not_needed_or_belong_to_nothing() {
    let generations = Generations::new();
    generations.project.run(&["lock"]).code(1);
    generations.write_sibling("hello there");
    let output = generations.project.run(&["lint"]).code(1);
    let needless = "patches/paged/0001-greet-more-warmly@v1-1.patch:1: it is not needed: 0001-greet-more-warmly.patch \
                    gives the same tree there by itself [sibling-not-needed]";
    assert!(output.stdout.contains(needless), "{output}");
    // A rebase there removes it.
    generations.rebase("v1-1", &[]).success();
    assert!(generations.siblings().is_empty());
    let folder = generations.project.path("patches/paged");
    let copy = |name: &str| {
        std::fs::copy(folder.join(format!("{}.patch", PATCHES[0])), folder.join(name)).unwrap();
    };
    copy("0001-greet-more-warmly@v3.patch");
    let output = generations.project.run(&["lint"]).code(1);
    assert!(
        output.stdout.contains("the pin `hello` has no generation `v3` [sibling-of-no-generation]"),
        "{output}"
    );
    assert!(output.stdout.contains("name one of its generations, v1-1, v2"), "{output}");
    // It belongs to no series.
    generations.project.run(&["apply"]).success();
    std::fs::remove_file(folder.join("0001-greet-more-warmly@v3.patch")).unwrap();
    copy("0001-greet-warmly@v2.patch");
    let output = generations.project.run(&["lint"]).code(1);
    assert!(output.stdout.contains("[sibling-without-patch]"), "{output}");
    assert!(output.stdout.contains("name it `0001-greet-more-warmly@v2.patch`"), "{output}");
    generations.project.run(&["apply"]).code(2).says(&["`patches/paged` is not a series"]);
}

/// The patch is changed first, and its siblings afterwards: the change is not held up by a generation.
#[test]
fn a_change_of_a_patch_names_the_generations_that_need_a_sibling_now() {
    let generations = Generations::with_siblings();
    generations.project.run(&["lock"]).success();
    commit_project(&generations.project);
    generations.project.run(&["edit", "paged"]).success();
    let folder = edit_folder(&generations.project, "paged");
    files::edit(&folder.join("src/ring.c"), "at % size", "at % (size)");
    git::commit(&folder, "Ring with care");
    generations.project.run(&["export", "paged"]).success().says(&[
        "paged-v1-1 stays as it was locked: the generation v1-1 needs siblings: 1 of 4 patches do not apply",
        "0004-ring-with-care.patch: conflict",
        "next: make them: cargo xtask rebase --variant paged-v1-1",
    ]);
    // The one that it applies to has followed.
    generations.project.run(&["--locked", "apply", "--check", "--variant", "paged-v2"]).success();
    generations.project.run(&["lock", "--check"]).code(1).says(&["the generation v1-1 needs siblings"]);
    generations.rebase("v1-1", &[]).code(4).says(&["0004-ring-with-care.patch does not apply to hello v1.1"]);
    let work = generations.work("v1-1");
    let ring = std::fs::read_to_string(work.join("src/ring.c")).unwrap();
    let ring = super::support::moving::without_conflicts(&ring, "    return (at + 1) % (size);\n");
    files::write(&work.join("src/ring.c"), ring);
    git::git(&work, &["add", "src/ring.c"]);
    generations.rebase("v1-1", &["--continue"]).success();
    assert!(generations.siblings().contains(&"0004-ring-with-care@v1-1.patch".to_string()));
    generations.project.run(&["--locked", "lock", "--check"]).success();
}

/// Upstream has not changed the lines of the last patch: the sibling of the first one has.
#[test]
fn a_conflict_that_a_sibling_caused_is_not_called_upstreams() {
    let generations = Generations::new();
    generations.write_sibling("hello you");
    generations.rebase("v1-1", &[]).code(4).says(&[
        "0003-greet-dearly.patch does not apply to hello v1.1",
        "src/greet.c: upstream did not change these lines: patches/paged/0001-greet-more-warmly.patch did, as it was \
         resolved or dropped",
    ]);
}

#[test]
fn a_change_of_a_replaced_patch_makes_the_lock_stale() {
    let generations = Generations::with_siblings();
    generations.project.run(&["lock"]).success();
    let path = format!("patches/paged/{}.patch", PATCHES[1]);
    generations.project.edit(&path, "From: Test Person <", "From: Another Person <");
    generations
        .project
        .run(&["lock", "--check"])
        .code(1)
        .says(&["replaced by patches/paged/0002-say-what-is-counted@v2.patch"]);
}

#[test]
fn a_sibling_that_is_not_exact_any_more_is_replaced() {
    let generations = Generations::with_siblings();
    let path = format!("patches/paged/{}", sibling(0, "v2"));
    let text = generations.project.read(&path);
    generations
        .project
        .write(&path, text.replace("+        return \"hi there\";", "+        return \"hi you\";"));
    generations
        .project
        .run(&["apply", "--check", "--variant", "paged-v2"])
        .code(1)
        .says(&["0001-greet-more-warmly@v2.patch", "a sibling has to be exact"]);
    generations.rebase("v2", &[]).code(4).says(&[
        "0001-greet-more-warmly@v2.patch is not exact any more; its patch is replayed instead",
        "0001-greet-more-warmly.patch does not apply to hello v2.0 automatically",
    ]);
    generations.solve("v2", &greet("hi there"));
    // The other siblings fit again.
    generations.rebase("v2", &["--continue"]).success();
    assert_eq!(generations.project.read(&path), text);
}

#[test]
fn a_generation_is_neither_edited_nor_moved() {
    let generations = Generations::new();
    generations.project.run(&["edit", "paged-v2"]).code(2).says(&[
        "`paged-v2` has the patches of `paged`, on the generation v2",
        "cargo xtask edit paged",
        "cargo xtask rebase --variant paged-v2 --edit NNNN",
    ]);
    generations.project.run(&["export", "paged-v2"]).code(2);
    let from = generations.upstream.to_str().unwrap();
    let to_v1 = ["--to", "v1.1", "--from", from];
    let base =
        "next: for the pin that its patches were made for: cargo xtask rebase --to REF --variant paged\n";
    generations.rebase("v2", &to_v1).code(2).says(&["which does not move", base]);
    let of_v2 = |command: &str, more: &[&str]| {
        generations.project.run(&[&[command, "--variant", "paged-v2"], more].concat())
    };
    of_v2("sync", &to_v1)
        .code(2)
        .says(&["which does not move", "cargo xtask sync --to REF --variant paged\n"]);
    let tip = ["--tip", "v1.1", "--from", from];
    of_v2("newest", &tip).code(2).says(&["which does not move", "cargo xtask newest --variant paged\n"]);
    let until = ["--until", "status"];
    let canary = of_v2("canary", &[&tip[..], &until].concat()).code(2);
    canary.says(&["which does not move", "cargo xtask canary --variant paged\n"]);
}

#[test]
fn the_status_of_a_generation_is_not_that_of_a_pin() {
    let generations = Generations::with_siblings();
    let status = |more: &[&str]| generations.project.run(&[&["status"], more].concat());
    let output = status(&["--variant", "paged-v2"]).success();
    let headline = "paged-v2: 2 of 2 patches are exact at hello v2.0, the generation\n";
    assert!(output.stdout.starts_with(headline), "{output}");
    let json = status(&["--variant", "paged-v2", "--json"]).success().json();
    assert_eq!(json["generation"], "v2");
    assert!(status(&["--json"]).success().json().get("generation").is_none());
    // It does not move, so no command moves it.
    let from = generations.upstream.to_str().unwrap();
    let output = status(&["--variant", "paged-v1-1", "--tip", "v2.0", "--from", from]).code(1);
    assert!(output.stdout.contains("next: cargo xtask status --long"), "{output}");
    assert!(!output.stdout.contains("rebase") && !output.stdout.contains(", the pin"), "{output}");
}

/// `edit` refuses a generation: what does not belong to the conflict goes into the sibling later.
#[test]
fn another_change_is_made_later_in_the_sibling() {
    let generations = Generations::new();
    generations.rebase("v2", &["--drop-upstreamed"]).code(4);
    let work = generations.work("v2");
    files::edit(&work.join("src/name.c"), "world", "all");
    git::git(&work, &["add", "src/name.c"]);
    generations.solve("v2", &greet("hi there"));
    let later = "cargo xtask rebase --variant paged-v2 --edit 0001";
    generations
        .rebase("v2", &["--continue"])
        .code(4)
        .says(&["src/name.c:", &format!("next: or make it later, in the sibling: {later}")])
        .says_nothing_of("cargo xtask edit");
    git::git(&work, &["checkout", "automatic", "--", "src/name.c"]);
    generations.rebase("v2", &["--continue"]).code(4);
    generations
        .rebase("v2", &["--continue", "--edit", "1"])
        .code(2)
        .says(&["is replayed already", &format!("next: change its sibling afterwards: {later}")]);
}

/// The siblings stay while the pin moves, and the lock of each generation is that of the moved patches.
#[test]
fn the_pin_moves_without_its_siblings() {
    let generations = Generations::with_siblings();
    generations.project.run(&["lock"]).success();
    let before: Vec<String> = generations.siblings();
    let from = generations.upstream.to_str().unwrap();
    let output = generations.project.run(&["rebase", "--to", "v1.1", "--from", from]).success();
    assert!(output.stdout.contains("now on v1.1"), "{output}");
    assert_eq!(generations.siblings(), before);
    generations.project.run(&["--locked", "lock", "--check"]).success();
    assert_eq!(generations.file("v2", "src/greet.c"), greet("hi there, dear"));
}

/// Adds a variant without patches on a generation.
fn add_stock(generations: &Generations, generation: &str) {
    let variant = format!("\n[variants.stock-{generation}]\npin = \"{generation}\"\nlike = \"stock\"\n");
    let pins = generations.project.read("pins.toml");
    generations.project.write("pins.toml", pins + &variant);
}

#[test]
fn a_rebase_locks_every_variant_on_the_generation() {
    let generations = Generations::new();
    add_stock(&generations, "v1-1");
    generations.rebase("v1-1", &["--edit", "1"]).code(4);
    generations.rebase("v1-1", &["--continue"]).success();
    let lock = generations.project.read("espalier.lock");
    assert!(lock.contains("[variants.paged-v1-1]") && lock.contains("[variants.stock-v1-1]"), "{lock}");
}

/// The entry of a variant without patches names the tree that those of others were made for.
#[test]
fn a_move_of_the_pin_locks_every_variant_on_its_generations() {
    let generations = Generations::with_siblings();
    add_stock(&generations, "v2");
    generations.project.run(&["lock"]).success();
    let from = generations.upstream.to_str().unwrap();
    generations.project.run(&["rebase", "--to", "v1.1", "--from", from]).success();
    generations.project.run(&["--locked", "lock", "--check"]).success();
}

/// The reason is in the sibling, as for `prove --generation`.
#[test]
fn an_unfinished_replay_is_proved_with_the_reasons_of_dropped_patches() {
    let generations = Generations::new();
    generations.rebase("v2", &["--drop-upstreamed"]).code(4);
    generations.rebase("v2", &["--skip"]).code(4);
    generations.rebase("v2", &["--skip"]).success();
    let path = format!("patches/paged/{}", sibling(0, "v2"));
    generations.project.edit(&path, "because: TODO", "because: the greeting is another one");
    generations.project.run(&["lock"]).success();
    generations.rebase("v2", &["--edit", "3"]).code(4);
    let output = generations.project.run(&["prove", "--rebase", "--variant", "paged-v2"]).success();
    assert!(output.stdout.contains("but for 1 intended difference"), "{output}");
}

/// The dropped patches stay at the pin, so the others keep their numbers.
#[test]
fn a_dropped_patch_renumbers_nothing_on_a_generation() {
    let generations = Generations::new();
    generations.rebase("v1-1", &["--edit", "1"]).code(4);
    generations.rebase("v1-1", &["--skip"]).code(4);
    let output = generations.project.run(&["prove", "--rebase", "--variant", "paged-v1-1"]).code(1);
    assert!(output.stdout.contains(" 0002-say-what-is-counted.patch\n"), "{output}");
    generations.rebase("v1-1", &["--abort"]).success();
}

#[test]
fn a_stopped_replay_is_abandoned() {
    let generations = Generations::new();
    generations.rebase("v2", &[]).code(4);
    generations.rebase("v2", &[]).code(4).says(&["is still in progress"]);
    // The pin is not in the way, nor is the other generation.
    generations.rebase("v1-1", &[]).success();
    let output = generations.rebase("v2", &["--abort"]).success();
    assert!(output.stdout.contains("the replay of paged-v2 on the generation v2"), "{output}");
    assert!(!generations.work("v2").exists() && generations.siblings().is_empty());
    generations.rebase("v2", &["--continue"]).code(2).says(&["cargo xtask rebase --variant paged-v2"]);
}
