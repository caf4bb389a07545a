//! Series of three patches on an upstream of a few files, before and after a move.

use std::collections::BTreeMap;

use espalier_series::{
    BinaryHalf, BinaryPatch, Change, ChangedBaseFile, Content, FileMode, FilePatch, FileSide, MemoryTree,
    Mode, ObjectId, Patch, PlacedPatch, PlacedSeries, ProofFinding, RepoPath, SeriesProof, hunks_between,
    prove_series,
};

/// The files of a tree.
pub type Files = BTreeMap<String, (Mode, Vec<u8>)>;

/// The file that most patches change.
pub const CODE: &str = "src/a.c";

/// The states of a series: its base, and after each patch.
#[derive(Clone)]
pub struct SeriesStates {
    pub states: Vec<Files>,
}

/// Returns a function of ten lines that occur nowhere else.
pub fn function(name: &str) -> String {
    let lines: String = (0..10).map(|line| format!("    {name}_{line}();\n")).collect();
    format!("int {name}(void) {{\n{lines}}}\n\n")
}

/// Returns one of several functions with the same lines.
pub fn twin(name: &str) -> String {
    format!(
        "int {name}(int twin) {{\n    int more = twin + 1;\n    twin = twin * 2;\n    more = more + twin;\n    \
         return more;\n}}\n\n"
    )
}

/// Returns the files of upstream at the pin.
pub fn pinned() -> Files {
    let code = ["alpha", "beta", "gamma"].map(function).concat()
        + &twin("left")
        + &twin("right")
        + function("last").trim_end()
        + "\n";
    let story: String = (0..30).map(|line| format!("line {line} of the story\n")).collect();
    Files::from([
        (CODE.to_owned(), (Mode::File, code.into_bytes())),
        ("src/untouched.c".to_owned(), (Mode::File, function("untouched").into_bytes())),
        ("src/old.c".to_owned(), (Mode::File, story.into_bytes())),
        ("run.sh".to_owned(), (Mode::File, b"echo run\n".to_vec())),
        ("data/logo.bin".to_owned(), (Mode::File, [&[0, 1, 2][..], &[7; 300]].concat())),
        ("docs/link".to_owned(), (Mode::Symlink, b"../README.md".to_vec())),
    ])
}

/// Returns the files as upstream has them after the move.
fn moved(pinned: &Files) -> Files {
    let mut files = pinned.clone();
    edit(&mut files, CODE, "int alpha(void) {\n", "// The first.\n// More of it.\nint alpha(void) {\n");
    edit(&mut files, CODE, "    alpha_1();\n", "    alpha_one();\n");
    edit(&mut files, CODE, "    gamma_2();\n", "");
    edit(&mut files, CODE, "int gamma(void) {\n", &(function("delta") + "int gamma(void) {\n"));
    files.insert("src/new.c".to_owned(), (Mode::File, function("new").into_bytes()));
    files
}

/// A change of files.
pub type Edit = fn(&mut Files);

/// The patches, as changes to whatever tree they are applied to.
pub const PATCHES: [(&str, Edit); 3] = [
    ("0001-change-functions.patch", |files| {
        edit(files, CODE, "    alpha_3();\n", "    alpha_3();\n    own_one();\n    own_two();\n");
        edit(files, CODE, "    alpha_8();\n", "");
        edit(files, CODE, "    twin = twin * 2;\n", "    twin = twin * 3;\n");
    }),
    ("0002-rename-a-file.patch", |files| {
        files.insert("src/own.c".to_owned(), (Mode::File, b"int own_a;\nint own_b;\n".to_vec()));
        let old = files.remove("src/old.c").unwrap();
        files.insert("src/renamed.c".to_owned(), old);
        edit(files, "src/renamed.c", "line 9 ", "row 9 ");
        files.get_mut("run.sh").unwrap().0 = Mode::Executable;
    }),
    ("0003-change-the-logo.patch", |files| {
        files.get_mut("data/logo.bin").unwrap().1[5] = 9;
        edit(files, CODE, "    beta_3();\n", "    beta_3();\n    own_three();\n");
    }),
];

pub fn edit(files: &mut Files, path: &str, from: &str, to: &str) {
    let content = &mut files.get_mut(path).unwrap_or_else(|| panic!("no {path}")).1;
    let text = String::from_utf8(std::mem::take(content)).unwrap();
    assert!(text.contains(from), "{path} has no {from:?}:\n{text}");
    *content = text.replacen(from, to, 1).into_bytes();
}

impl SeriesStates {
    pub fn on(base: Files) -> SeriesStates {
        let mut states = vec![base];
        for (_, change) in PATCHES {
            let mut files = states.last().unwrap().clone();
            change(&mut files);
            states.push(files);
        }
        SeriesStates { states }
    }

    /// Changes every state from `from` to before `to`, counted in patches.
    pub fn with(mut self, from: usize, to: usize, change: fn(&mut Files)) -> SeriesStates {
        self.states[from..to].iter_mut().for_each(change);
        self
    }

    fn trees(&self) -> Vec<MemoryTree> {
        let tree = |files: &Files| {
            let mut tree = MemoryTree::new();
            files.iter().for_each(|(path, (mode, content))| tree.put(path, *mode, content));
            tree
        };
        self.states.iter().map(tree).collect()
    }

    /// Returns the patches; one that changes nothing cannot be written, and is dropped.
    fn patches(&self) -> Vec<Option<Patch>> {
        let pairs = self.states.iter().zip(&self.states[1..]);
        pairs.zip(PATCHES).map(|((before, after), (name, _))| patch(name, before, after)).collect()
    }
}

/// Returns the patch between two trees, with the one rename that there is.
fn patch(name: &str, before: &Files, after: &Files) -> Option<Patch> {
    let (from, to) = ("src/old.c", "src/renamed.c");
    let is_renamed = !after.contains_key(from) && before.contains_key(from) && after.contains_key(to);
    let mut paths: Vec<&String> = before.keys().chain(after.keys()).collect();
    paths.sort();
    paths.dedup();
    let mut files = Vec::new();
    for path in paths.into_iter().filter(|path| !(is_renamed && *path == from)) {
        let old = if is_renamed && path == to { from } else { path.as_str() };
        let sides = (before.get(old), after.get(path));
        if sides.0 != sides.1 || old != path {
            files.push(file_patch((old, path), sides.0, sides.1));
        }
    }
    (!files.is_empty()).then(|| Patch {
        name: name.to_owned(),
        author: "A U Thor <author@example.com>".to_owned(),
        date: String::new(),
        subject: name.to_owned(),
        subject_line: 1,
        body: String::new(),
        trailers: Vec::new(),
        files,
    })
}

fn file_patch(
    (old, new): (&str, &str),
    before: Option<&(Mode, Vec<u8>)>,
    after: Option<&(Mode, Vec<u8>)>,
) -> FilePatch {
    let side = |path: &str, file: &(Mode, Vec<u8>)| FileSide {
        path: RepoPath::new(path.as_bytes()).unwrap(),
        mode: FileMode::of_entry(file.0),
        id: Some(ObjectId::of_blob(&file.1)),
    };
    let content = |file: Option<&(Mode, Vec<u8>)>| file.map(|file| file.1.clone()).unwrap_or_default();
    let (left, right) = (content(before), content(after));
    let is_binary = left.contains(&0) || right.contains(&0);
    FilePatch {
        change: match (before, after) {
            (None, _) => Change::Create,
            (_, None) => Change::Delete,
            _ if old != new => Change::Rename,
            _ => Change::Modify,
        },
        old: before.map(|file| side(old, file)),
        new: after.map(|file| side(new, file)),
        content: match left == right {
            true => Content::Unchanged,
            false if is_binary => {
                Content::Binary(BinaryPatch { forward: BinaryHalf::Literal(right), reverse: None })
            }
            false => Content::Text(hunks_between(&left, &right)),
        },
        line: 1,
    }
}

pub fn placed(made: &SeriesStates) -> PlacedSeries<'static> {
    let trees: &'static [MemoryTree] = made.trees().leak();
    let patches: &'static [Option<Patch>] = made.patches().leak();
    let pairs = trees.iter().zip(&trees[1..]).zip(patches);
    PlacedSeries {
        base: &trees[0],
        patches: pairs
            .filter_map(|((before, after), patch)| {
                Some(PlacedPatch { patch: patch.as_ref()?, before, after })
            })
            .collect(),
    }
}

pub fn prove(old: &SeriesStates, new: &SeriesStates) -> SeriesProof {
    let upstream = changed_between(&old.states[0], &new.states[0]);
    prove_series(&placed(old), &placed(new), true, &upstream).unwrap()
}

/// Returns the files that differ between two bases.
fn changed_between(old: &Files, new: &Files) -> Vec<ChangedBaseFile> {
    let content = |files: &Files, path: &str| files.get(path).map(|file| file.1.clone()).unwrap_or_default();
    let mut paths: Vec<&String> = old.keys().chain(new.keys()).collect();
    paths.sort();
    paths.dedup();
    let files = paths.into_iter().map(|path| ChangedBaseFile {
        path: path.as_bytes().to_vec(),
        old: content(old, path),
        new: content(new, path),
    });
    files.filter(|file| file.old != file.new).collect()
}

/// Returns the series before and after a move without faults.
pub fn clean() -> (SeriesStates, SeriesStates) {
    let pinned = pinned();
    let new = moved(&pinned);
    (SeriesStates::on(pinned), SeriesStates::on(new))
}

pub fn open(proof: &SeriesProof) -> Vec<&ProofFinding> {
    proof.findings().filter(|finding| finding.is_open()).collect()
}
