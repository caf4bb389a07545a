//! Replays a patch onto a newer tree than the one it was made for. Prints the verdict on each hunk, then the verdict of
//! the replay and the file that results. All data are in this file.
//!
//! ```text
//! cargo run --package espalier-series --example replay
//! ```

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{self, Write as _};

use espalier_series::{
    AppliedSeries, MemoryTree, Mode, Replay, TreeNames, Verdict, apply_patch, lossy, parse,
};

fn main() -> Result<(), Box<dyn Error>> {
    io::stdout().write_all(report()?.as_bytes())?;
    Ok(())
}

/// Returns the report: reasons why the patch cannot be applied exactly, and the result of merging it.
pub fn report() -> Result<String, Box<dyn Error>> {
    let upstream = format!("#include \"stack.h\"\n{}", PINNED.replace("s->used > 0", "!is_empty(s)"));
    let (pinned, mut newer) = (tree(&[("src/stack.c", PINNED)]), tree(&[("src/stack.c", &upstream)]));
    newer.came_after(&pinned);
    let patch = parse("0001-stack-count-calls.patch", PATCH.as_bytes())?;
    let Verdict::Drifted(drift) = apply_patch(&patch, &newer)? else { return Ok("exact\n".to_owned()) };
    let mut text = drift.to_string();
    let (patches, upstreamed) = ([patch], BTreeSet::new());
    let applied = AppliedSeries::new(&patches, &pinned)?;
    let mut replay = Replay::new(&applied, &newer, TreeNames { pin: "pinned", tip: "newer" }, &upstreamed);
    let step = replay.step(0).map_err(|error| format!("{error:?}"))?;
    text += &format!("\nreplayed: {}\n", step.replayed.class().describe());
    for file in step.replayed.files.iter().filter_map(|file| file.after.as_ref()) {
        text += &format!("\n{}:\n{}", file.path, lossy(&replay.blob(file.id)?));
    }
    Ok(text)
}

fn tree(files: &[(&str, &str)]) -> MemoryTree {
    let mut tree = MemoryTree::new();
    files.iter().for_each(|(path, text)| tree.put(path, Mode::File, text.as_bytes()));
    tree
}

const PINNED: &str = "\
void push(struct stack * s, int item) {
    check(s->used < s->size);
    s->items[s->used++] = item;
}

int pop(struct stack * s) {
    check(s->used > 0);
    s->used -= 1;
    return s->items[s->used];
}
";

const PATCH: &str = "\
From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: A U Thor <author@example.com>
Date: Thu, 1 Jan 2026 00:00:00 +0000
Subject: [PATCH] stack: count calls

diff --git a/src/stack.c b/src/stack.c
index 4c516197a84b6a308798e5e269276d4b70fbea48..43e1e9469bcb2c2baacbf44ba1599d5e3ab5b687 100644
--- a/src/stack.c
+++ b/src/stack.c
@@ -1,4 +1,5 @@
 void push(struct stack * s, int item) {
     check(s->used < s->size);
+    s->pushes += 1;
     s->items[s->used++] = item;
 }
@@ -7,4 +8,5 @@ int pop(struct stack * s) {
     check(s->used > 0);
     s->used -= 1;
+    s->pops += 1;
     return s->items[s->used];
 }
";
