//! Similarity of two texts, checked against git's own measure: the similarity index of a rename.

use std::process::Command;

use espalier_series::percent_alike;

use crate::random::Random;

const PAIRS: usize = 150;

#[test]
fn two_texts_are_as_like_as_git_says() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random::new(20_261_124);
    let mut seen = [0; 4];
    for number in 0..PAIRS {
        let (left, right) = pair(&mut random);
        let by_git = by_git(folder.path(), &left, &right);
        // Git compares hashes of pieces, which rarely collide.
        let ours = percent_alike(&left, &right);
        assert!(by_git == ours || by_git == ours + 1, "{number}: git {by_git} %, ours {ours} %");
        seen[usize::from(ours.min(99) / 25)] += 1;
    }
    assert!(seen.iter().all(|count| *count > 5), "it tests only some degrees: {seen:?}");
}

/// Less than one percent counts as zero.
fn by_git(folder: &std::path::Path, left: &[u8], right: &[u8]) -> u8 {
    for (side, text) in [("left", left), ("right", right)] {
        std::fs::create_dir_all(folder.join(side)).unwrap();
        std::fs::write(folder.join(side).join(format!("{side}.txt")), text).unwrap();
    }
    let mut git = Command::new("git");
    git.current_dir(folder).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = git.args(["diff", "--no-index", "--name-status", "-M1%", "left", "right"]).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    stdout.strip_prefix('R').map_or(0, |rest| rest[..3].parse().unwrap())
}

/// Returns a text, and one that has some of its lines; lines of all lengths, with both kinds of line ends.
fn pair(random: &mut Random) -> (Vec<u8>, Vec<u8>) {
    let end = if random.below(4) == 0 { "\r\n" } else { "\n" };
    let left: Vec<String> = (0..1 + random.below(60)).map(|_| line(random) + end).collect();
    let kept = random.below(101);
    let mut right: Vec<String> = left
        .iter()
        .map(|old| if random.below(100) < kept { old.clone() } else { line(random) + "\n" })
        .collect();
    right.extend((0..random.below(20)).map(|_| line(random)));
    (left.concat().into_bytes(), right.concat().into_bytes())
}

fn line(random: &mut Random) -> String {
    let word = |random: &mut Random| format!("word{} ", random.below(400));
    (0..random.below(30)).map(|_| word(random)).collect()
}
