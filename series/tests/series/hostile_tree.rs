//! Well-formed patches that must not be applied to the tree at hand.

use espalier_series::{
    FileDriftKind, FileMode, MemoryTree, Mode, ObjectId, PatchClass, TargetRefusal, Tree, TreeEntry,
    TreeError,
};

use crate::support::{changes, create, delete, drift, modify, read, rename, tree};

/// Returns the refusal of the last file of a diff.
fn refused(diff: &str, tree: &MemoryTree) -> TargetRefusal {
    let drift = drift(&read(diff), tree);
    assert_eq!(drift.class, PatchClass::Refused, "{drift}");
    match drift.files.into_iter().next_back().map(|file| file.kind) {
        Some(FileDriftKind::Refused { refusal }) => refusal,
        other => panic!("{other:?}"),
    }
}

fn through(parent: &str, found: Mode) -> TargetRefusal {
    TargetRefusal::ThroughNonFolder { parent: parent.to_owned(), found }
}

fn collides(with: &str) -> TargetRefusal {
    TargetRefusal::CaseCollision { with: with.to_owned() }
}

#[test]
fn paths_through_a_file() {
    let mut tree = tree(&[("file", "x\n"), ("dir/a", "a\n")]);
    tree.put("link", Mode::Symlink, b"/etc");
    tree.put("dir/sub", Mode::Submodule, b"");
    assert_eq!(refused(&create("link/passwd"), &tree), through("link", Mode::Symlink));
    assert_eq!(refused(&create("link/a/b/c"), &tree), through("link", Mode::Symlink));
    assert_eq!(refused(&create("dir/sub/x"), &tree), through("dir/sub", Mode::Submodule));
    assert_eq!(refused(&create("file/x"), &tree), through("file", Mode::File));
    assert_eq!(refused(&delete("link/passwd", "x"), &tree), through("link", Mode::Symlink));
    let renamed = rename("dir/a", "link/a");
    assert_eq!(refused(&renamed, &tree), through("link", Mode::Symlink));
}

#[test]
fn targets_that_are_no_files() {
    let mut tree = tree(&[("dir/a", "a\n")]);
    tree.put("link", Mode::Symlink, b"a\n");
    tree.put("sub", Mode::Submodule, b"");
    let change = |path: &str| modify(path, "a\n", "b\n", "@@ -1 +1 @@\n-a\n+b\n");
    let not_a_file = |found| TargetRefusal::NotAFile { found };
    assert_eq!(refused(&change("link"), &tree), not_a_file(Mode::Symlink));
    assert_eq!(refused(&change("sub"), &tree), not_a_file(Mode::Submodule));
    assert_eq!(refused(&change("dir"), &tree), not_a_file(Mode::Folder));
    assert_eq!(refused(&create("dir"), &tree), not_a_file(Mode::Folder));
    assert_eq!(refused(&create("link"), &tree), not_a_file(Mode::Symlink));
    assert_eq!(refused(&rename("link", "x"), &tree), not_a_file(Mode::Symlink));
}

#[test]
fn collisions_with_the_tree() {
    let tree = tree(&[("Src/Main.c", "x\n"), ("docs/ÄB.md", "y\n"), ("z", "z\n")]);
    assert_eq!(refused(&create("src/other.c"), &tree), collides("Src"));
    assert_eq!(refused(&create("SRC"), &tree), collides("Src"));
    assert_eq!(refused(&create("Src/main.c"), &tree), collides("Src/Main.c"));
    assert_eq!(refused(&create("Src/MAIN.c/x"), &tree), collides("Src/Main.c"));
    assert_eq!(refused(&create("docs/äb.md"), &tree), collides("docs/ÄB.md"));
    assert_eq!(refused(&rename("z", "src/z"), &tree), collides("Src"));
    assert_eq!(changes(&read(&create("Src/main.cc")), &tree).len(), 1);
}

#[test]
fn collisions_inside_a_patch() {
    let tree = MemoryTree::new();
    let two = |first: &str, second: &str| format!("{}{}", create(first), create(second));
    assert_eq!(refused(&two("a.c", "A.c"), &tree), collides("a.c"));
    assert_eq!(refused(&two("d/x", "D/y"), &tree), collides("d"));
    let both = TargetRefusal::FileAndFolder { with: "d".to_owned() };
    assert_eq!(refused(&two("d", "d/x"), &tree), both);
}

#[test]
fn a_file_may_change_its_case_or_be_replaced_by_a_folder() {
    let tree = tree(&[("Readme", "x\n"), ("lib", "x\n")]);
    let moved = changes(&read(&rename("Readme", "README")), &tree);
    assert_eq!(moved.len(), 2);
    assert!(moved[0].new.is_none(), "what goes away comes first");
    let diff = format!("{}{}", create("lib/x"), delete("lib", "x"));
    let made = changes(&read(&diff), &tree);
    assert_eq!((made[0].path.as_bytes(), made[1].path.as_bytes()), (&b"lib"[..], &b"lib/x"[..]));
}

#[test]
fn existing_and_missing_files_are_distinguished() {
    let tree = tree(&[("a", "other\n"), ("b", "new\n")]);
    let kind = |diff: &str| drift(&read(diff), &tree).files.remove(0).kind;
    assert_eq!(kind(&create("a")), FileDriftKind::PathExists);
    assert_eq!(kind(&create("b")), FileDriftKind::Upstreamed);
    assert_eq!(kind(&delete("gone", "x")), FileDriftKind::Upstreamed);
    assert_eq!(kind(&rename("gone", "c")), FileDriftKind::TargetDeleted);
    assert_eq!(kind(&rename("a", "b")), FileDriftKind::PathExists);
}

#[test]
fn a_mode_is_part_of_the_pre_image() {
    let mut tree = tree(&[("a", "a\n")]);
    tree.put("run", Mode::Executable, b"a\n");
    let change = read("diff --git a/a b/a\nold mode 100644\nnew mode 100755\n");
    let new = changes(&change, &tree).remove(0).new.unwrap();
    assert_eq!((new.mode, new.content), (FileMode::Executable, None));
    let text = modify("run", "a\n", "b\n", "@@ -1 +1 @@\n-a\n+b\n");
    let differs = FileDriftKind::ModeDiffers { expected: Mode::File, found: Mode::Executable };
    assert_eq!(drift(&read(&text), &tree).files[0].kind, differs);
}

#[test]
fn a_result_that_is_not_the_promised_blob() {
    let tree = tree(&[("a", "a\n")]);
    let text = modify("a", "a\n", "b\n", "@@ -1 +1 @@\n-a\n+c\n");
    let drift = drift(&read(&text), &tree);
    assert_eq!(drift.class, PatchClass::Refused);
    assert!(matches!(drift.files[0].kind, FileDriftKind::PatchContradictsItself { .. }));
}

/// A tree that cannot be read is an error, never a class.
#[test]
fn a_broken_tree_is_not_an_answer() {
    struct Broken;
    impl Tree for Broken {
        fn entry(&self, _: &[u8]) -> Result<Option<TreeEntry>, TreeError> {
            Err(TreeError { message: "disk".to_owned() })
        }
        fn blob(&self, _: ObjectId) -> Result<std::borrow::Cow<'_, [u8]>, TreeError> {
            Err(TreeError { message: "disk".to_owned() })
        }
        fn siblings(&self, _: &[u8]) -> Result<Vec<Vec<u8>>, TreeError> {
            Ok(Vec::new())
        }
        fn find_blob(&self, _: ObjectId) -> Result<Vec<Vec<u8>>, TreeError> {
            Ok(Vec::new())
        }
        fn find_file_name(&self, _: &[u8]) -> Result<Vec<Vec<u8>>, TreeError> {
            Ok(Vec::new())
        }
    }
    assert!(espalier_series::apply_patch(&read(&create("a")), &Broken).is_err());
}
