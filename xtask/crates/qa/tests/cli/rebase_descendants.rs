//! When a series changes, the series of the variants that extend it are rebased onto it.

use super::support::stacked::{CHILD, GRANDCHILD, Stacked};
use super::support::{files, git};

#[test]
fn an_export_rebases_the_descendants_with_it() {
    let stacked = Stacked::new();
    let ring = stacked.project.read(CHILD[0]);
    insta::assert_snapshot!(stacked.comment_parent(&[]), @"
    exit: 0
    -- stdout --
    patches/paged: 4 patches; changed:
      new      0004-say-more.patch
    -- stderr --
         Rebased child onto paged: 1 of 2 patches changed
         Rebased grandchild onto child: 1 of 1 patches changed
         Locking child in espalier.lock: tree 3ac07c67be4ac17380fa2e0656c52cc3bbd88ccc
         Locking grandchild in espalier.lock: tree 824615c180bbc457628e15f695f1dbb5921da53b
         Locking paged in espalier.lock: tree 300be16233e110b0741e5fece63b50215891162a
    ");
    stacked.assert_settled();
    assert_eq!(stacked.project.read(CHILD[0]), ring);
    let greeting = stacked.greeting_of("grandchild");
    for line in ["// What is said first of all.", "kind <= 0", "dear", "good day to you all"] {
        assert!(greeting.contains(line), "{line}: {greeting}");
    }
    assert!(stacked.export("paged", &[]).success().stdout.contains("nothing changed"));
    stacked.project.run(&["edit", "grandchild"]).success();
    assert!(stacked.export("grandchild", &[]).success().stdout.contains("nothing changed"));
}

#[test]
fn a_dry_run_of_an_export_says_it_and_changes_nothing() {
    let stacked = Stacked::new();
    let before = stacked.committed();
    let output = stacked.comment_parent(&["--dry-run"]).success();
    let says =
        ["Would rebase child onto paged: 1 of 2 patches changed", "grandchild onto child: 1 of 1 patches"];
    output.says(&says).says_nothing_of("Locking");
    assert_eq!(stacked.committed(), before);
    stacked.assert_settled();
}

#[test]
fn a_stale_lock_stops_an_export_that_has_to_rebase() {
    let stacked = Stacked::new();
    stacked.change("paged", "src/greet.c", ("said first.", "said first of all."), "Say more");
    let before = stacked.committed();
    stacked.project.run(&["--locked", "export", "paged"]).code(1).says(&["child", "is stale"]);
    assert_eq!(stacked.committed(), before);
}

/// The series of the parent is exported all the same, and the command in the warning continues from there.
#[test]
fn a_conflict_is_handed_over_by_the_command_of_the_warning() {
    let stacked = Stacked::new();
    let before = [CHILD[0], CHILD[1], GRANDCHILD].map(|file| stacked.project.read(file));
    insta::assert_snapshot!(stacked.turn_parent(), @"
    exit: 0
    -- stdout --
    patches/paged: 4 patches; changed:
      new      0004-greet-in-the-evening.patch
    -- stderr --
    warning: child extends paged and no longer applies
      next: cargo xtask rebase --variant child
    warning: grandchild extends child, and will be rebased with it
         Locking paged in espalier.lock: tree 5a7e7f2e401f572b9724ac1ce9d21c6585c84a52
    ");
    assert_eq!([CHILD[0], CHILD[1], GRANDCHILD].map(|file| stacked.project.read(file)), before);
    stacked.project.run(&["lock", "--check"]).code(1);
    insta::assert_snapshot!(stacked.rebase(&[]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: patches/child/0002-greet-all.patch does not apply to variant paged automatically (1 of 2 patches done)
      src/greet.c: upstream changed the same lines
      described for people and programs in target/espalier/rebase/hello/conflict
      next: git -C target/espalier/rebase/hello/work status    # git diff and git mergetool work there too
      next: resolve it, `git add` the files, then: cargo xtask rebase --variant child --continue
      next: or drop this patch: cargo xtask rebase --variant child --skip
      next: or abort the rebase; nothing has changed: cargo xtask rebase --variant child --abort
    ");
    assert_eq!(git::git(&stacked.work(), &["status", "--short"]), "UU src/greet.c");
    stacked.solve();
    insta::assert_snapshot!(stacked.rebase(&["--continue"]), @r#"
    exit: 0
    -- stdout --
    child: 2 of 2 patches, from variant paged (old), now on paged

      unchanged  patches/child/0001-ring-for-negative-positions.patch
      changed    patches/child/0002-greet-all.patch
                 its conflicts were resolved by hand

    patches/child/0002-greet-all.patch: changed
      @@
            if (kind == 0) {
                return "hello there, dear";
            }
      --    return "good day to you";
      -+    return "good day to you all";
      +-    return "good evening to you";
      ++    return "good evening to you all";
        }

    note: resolutions rewrite lines of upstream, and keep every word of them:
      0002-greet-all.patch rewrites src/greet.c:8, which upstream added: return "good evening to you";

    next: cargo xtask prove --variant child HEAD    # what each patch changes, compared with the last commit
    next: cargo xtask build --variant child    # the rebase has compiled nothing
    next: cargo xtask undo    # if the move was a mistake; before any other change
    -- stderr --
        Resolved patches/child/0002-greet-all.patch: src/greet.c
         Rebased grandchild onto child: 1 of 1 patches changed
         Locking child in espalier.lock: tree 40f8266fbfd5b0d48c57d65e19c591e14487d0a1
         Locking grandchild in espalier.lock: tree 70fbf0c2d7f6d89381cfc97cc46d40bf213310ed
    "#);
    stacked.assert_settled();
    assert_eq!(stacked.project.read(CHILD[0]), before[0]);
    let greeting = stacked.greeting_of("grandchild");
    assert!(greeting.contains("kind <= 0") && greeting.contains("good evening to you all"), "{greeting}");
}

#[test]
fn abort_changes_nothing_and_skip_drops_the_patch() {
    let stacked = Stacked::new();
    // The store keeps the old tree, although no patch produces it any more.
    stacked.amend_parent().success();
    let before = stacked.committed();
    stacked.rebase(&["--dry-run"]).code(4);
    assert_eq!(stacked.committed(), before);
    stacked.rebase(&[]).code(4);
    stacked.rebase(&[]).code(4).says(&["a rebase of child to paged is still in progress"]);
    let output = stacked.rebase(&["--abort"]).success();
    assert!(output.stdout.starts_with("aborted the rebase of child;"), "{output}");
    assert_eq!(stacked.committed(), before);
    stacked.rebase(&[]).code(4);
    stacked.rebase(&["--skip"]).success();
    stacked.assert_settled();
    assert_eq!(
        files::list(&stacked.project.path("patches/child")),
        ["0001-ring-for-negative-positions.patch"]
    );
    assert!(stacked.greeting_of("grandchild").contains("good evening to you\""));
}

#[test]
fn a_change_during_a_rebase_is_reported() {
    let stacked = Stacked::without_grandchild();
    stacked.turn_parent().success();
    stacked.rebase(&[]).code(4);
    stacked.solve();
    stacked.project.run(&["lint"]);
    stacked.change("paged", "src/greet.c", ("said first.", "said first of all."), "Say more");
    stacked.export("paged", &[]).success();
    stacked
        .rebase(&["--continue"])
        .code(4)
        .says(&["the series or what it extends was changed since the rebase began"]);
    stacked.rebase(&["--abort"]).success();
    stacked
        .rebase(&[])
        .code(4)
        .says(&["resolved as when patches/child/0002-greet-all.patch went onto variant paged"]);
}

/// A record that an earlier version wrote, without a scope, is read as the rebase of a pin.
#[test]
fn the_record_of_a_rebase_has_its_scope() {
    let stacked = Stacked::without_grandchild();
    stacked.turn_parent().success();
    stacked.rebase(&[]).code(4);
    let record = "target/espalier/rebase/hello/state.json";
    stacked.project.edit(record, "  \"scope\": \"series\",\n", "");
    stacked
        .rebase(&["--continue"])
        .code(4)
        .says(&["the series or its pin was changed since the rebase began"]);
}

/// The patches of the child apply again unchanged.
#[test]
fn a_parent_that_is_changed_back_needs_no_rebase() {
    for turn in [Stacked::turn_parent as fn(&Stacked) -> _, |stacked| stacked.comment_parent(&[])] {
        let stacked = Stacked::new();
        let before = stacked.committed();
        turn(&stacked).success();
        assert_ne!(stacked.committed(), before);
        stacked.revert_parent().success().says_nothing_of("warning");
        assert_eq!(stacked.committed(), before);
        stacked.assert_settled();
    }
}

/// The lock still records the tree that the child was made for, and the store has it.
#[test]
fn a_parent_that_changes_twice_is_followed_from_what_the_child_was_made_for() {
    let stacked = Stacked::new();
    stacked.turn_parent().success();
    stacked.change("paged", "src/greet.c", ("good evening", "good day"), "Greet in the day");
    let output = stacked.comment_parent(&[]).success();
    output.says(&["Rebased child onto paged: 1 of 2 patches changed", "Rebased grandchild onto child"]);
    stacked.assert_settled();
}

#[test]
fn without_a_target_there_has_to_be_something_to_rebase_onto() {
    let stacked = Stacked::new();
    let before = stacked.committed();
    let output = stacked.rebase(&[]).success();
    assert_eq!(output.stdout.trim_end(), "child applies to what it extends; there is nothing to rebase");
    stacked.rebase(&["--dry-run"]).success();
    for variant in ["paged", "stock"] {
        let output = stacked.project.run(&["rebase", "--variant", variant]).code(2);
        output.says(&[&format!("`--to` is required: {variant} extends no variant with patches")]);
    }
    assert_eq!(stacked.committed(), before);
}

/// A fresh clone has only the new patches of the parent.
#[test]
fn without_the_old_tree_the_error_says_how_to_make_it() {
    let stacked = Stacked::new();
    stacked.project.fresh_clone("before");
    stacked.amend_parent().success();
    let clone = stacked.project.fresh_clone("after");
    insta::assert_snapshot!(clone.run(&["rebase", "--variant", "child"]), @"
    exit: 3
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
    error: the tree that child was made for is not in the store
      ffac38472ad910edd6ab12f4f420bb8cd8b69174: paged as `espalier.lock` has it for child
      next: check out the patches of paged before the change: git restore --staged --worktree --source=COMMIT patches/paged    # COMMIT: the last one with them
      next: then: cargo xtask apply --check --variant child
      next: then: git restore --staged --worktree --source=HEAD patches/paged && cargo xtask rebase --variant child
    ");
    let restore = |from: &str| {
        let source = format!("--source={from}");
        git::git(clone.root(), &["restore", "--staged", "--worktree", &source, "patches/paged"]);
    };
    restore("HEAD~1");
    clone.run(&["apply", "--check", "--variant", "child"]).success();
    restore("HEAD");
    clone
        .run(&["rebase", "--variant", "child"])
        .code(4)
        .says(&["does not apply to variant paged automatically"]);
}

/// Reports on a child whose parent has changed name the next command.
#[test]
fn reports_lead_to_the_rebase() {
    let stacked = Stacked::without_grandchild();
    stacked.turn_parent().success();
    let next = "next: cargo xtask rebase --variant child";
    let output = stacked.project.run(&["status", "--variant", "child"]).code(1);
    assert!(output.stdout.lines().any(|line| line == next), "{output}");
    for command in ["apply --check", "build"] {
        let arguments: Vec<&str> = command.split(' ').chain(["--variant", "child"]).collect();
        let output = stacked.project.run(&arguments).code(1);
        output.says(&["if a variant that it extends has changed: cargo xtask rebase --variant child"]);
    }
    let output = stacked.project.run(&["status", "--variant", "paged"]).success();
    assert!(!output.stdout.contains("rebase"), "{output}");
}
