//! A synthetic upstream with a long history, written by `git fast-import`, and a series for its pin.

use std::fmt::Write as _;
use std::path::Path;

use espalier_core::error::Result;
use espalier_core::random::Random;
use espalier_core::sys::git::command::git;
use espalier_core::sys::machine::disk;

use super::synthetic::{edit, lines_of, path_of};

/// Size of the synthetic history.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Number of files in the tree.
    pub files: usize,
    /// Number of upstream commits, including the first one.
    pub commits: usize,
    /// Number of these commits that come after the pin.
    pub after_pin: usize,
    /// Number of patches in the series.
    pub patches: usize,
}

/// Creates `folder/upstream.git`, `folder/patches/synthetic` and `folder/pins.toml`.
pub fn make(folder: &Path, size: Size) -> Result<()> {
    let upstream = folder.join("upstream.git");
    let stream = folder.join("stream");
    disk::write_atomically(&stream, Stream::of(size).text.as_bytes())?;
    git(&upstream).args(["init", "--quiet", "--bare", "--template="]).arg(&upstream).success()?;
    git(&upstream).args(["symbolic-ref", "HEAD", "refs/heads/main"]).success()?;
    git(&upstream).args(["fast-import", "--quiet"]).input(&stream)?.success()?;
    disk::remove_file(&stream)?;
    let patches = folder.join("patches/synthetic");
    disk::create_folder(&patches)?;
    git(&upstream)
        .args(["format-patch", "--quiet", "--full-index", "--zero-commit", "--no-signature", "--binary"])
        .arg("--output-directory")
        .arg(&patches)
        .arg("v1..ours")
        .success()?;
    let tree = git(&upstream).args(["rev-parse", "v1^{tree}"]).success()?;
    let tree = espalier_series::lossy(&tree).trim().to_string();
    disk::write_atomically(&folder.join("pins.toml"), pins(&tree).as_bytes())
}

fn pins(tree: &str) -> String {
    format!(
        "default-variant = \"synthetic\"\n\n[pins.made]\nupstream = \"made\"\ntag = \"v1\"\ntree = \"{tree}\"\n\
         sources = [{{ path = \"upstream.git\" }}]\n\n[variants.synthetic]\npin = \"made\"\n\
         patches = \"patches/synthetic\"\n"
    )
}

/// Files as lists of lines, indexed by file number.
type Lines = Vec<Vec<String>>;

/// The input of `git fast-import`. Marks number the commits from 1.
struct Stream {
    text: String,
    random: Random,
    commits: usize,
}

impl Stream {
    fn of(size: Size) -> Stream {
        let mut stream = Stream { text: String::new(), random: Random(3), commits: 0 };
        let mut files: Lines = (0..size.files).map(lines_of).collect();
        let all: Vec<usize> = (0..size.files).collect();
        stream.commit("main", &[], &files, &all);
        let pin = size.commits.saturating_sub(size.after_pin);
        let mut at_pin = files.clone();
        while stream.commits < size.commits {
            stream.step(&mut files);
            if stream.commits <= pin {
                at_pin.clone_from(&files);
                let _ = write!(stream.text, "reset refs/tags/v1\nfrom :{}\n\n", stream.commits);
            }
        }
        stream.series(at_pin, pin, size.patches);
        stream
    }

    /// Adds one commit; at intervals, one on a branch, and its merge.
    fn step(&mut self, files: &mut Lines) {
        let before = self.commits;
        let changed = self.change(files);
        if !self.commits.is_multiple_of(12) {
            return self.commit("main", &[before], files, &changed);
        }
        self.commit("side", &[before], files, &changed);
        let side = self.commits;
        self.commit("main", &[before, side], files, &changed);
    }

    fn change(&mut self, files: &mut Lines) -> Vec<usize> {
        let count = 1 + self.random.below(3);
        let changed: Vec<usize> = (0..count).map(|_| self.random.below(files.len())).collect();
        for at in &changed {
            if let Some(lines) = files.get_mut(*at) {
                edit(lines, self.commits, &mut self.random);
            }
        }
        changed
    }

    fn series(&mut self, mut files: Lines, pin: usize, patches: usize) {
        let mut before = pin;
        for _ in 0..patches {
            let changed = self.change(&mut files);
            self.commit("ours", &[before], &files, &changed);
            before = self.commits;
        }
    }

    fn commit(&mut self, branch: &str, parents: &[usize], files: &Lines, changed: &[usize]) {
        self.commits += 1;
        let number = self.commits;
        let who = format!("Bench <bench@espalier.invalid> {} +0000", 946_684_800 + number * 60);
        let message = format!("Change number {number}\n\nUpstream-Status: Pending\nDrop-when: never\n");
        let length = message.len();
        self.text += &format!(
            "commit refs/heads/{branch}\nmark :{number}\nauthor {who}\ncommitter {who}\ndata {length}\n{message}\n"
        );
        for (at, parent) in parents.iter().enumerate() {
            self.text += &format!("{} :{parent}\n", if at == 0 { "from" } else { "merge" });
        }
        for at in changed {
            let Some(lines) = files.get(*at) else { continue };
            let length: usize = lines.iter().map(String::len).sum();
            self.text += &format!("M 644 inline {}\ndata {length}\n", path_of(*at));
            self.text.extend(lines.iter().map(String::as_str));
            self.text.push('\n');
        }
        self.text.push('\n');
    }
}
