//! Slot files: only intact files are restored, only for their owner, and no file content can crash the server.

use std::path::{Path, PathBuf};

use espalier_core::error::Result;
use espalier_core::sys::machine::{disk, ours};
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::asking::{ask, plain, post, with};
use super::fixture::{Model, PromiseFixture};
use super::tenants::{PROMPT, question};
use crate::serving::cases;

/// Length of the saved prompt, in tokens: short, so that the file is small.
const FEW: usize = 5;

/// Number of bytes at either end of a file that are all damaged, and the approximate number of those between.
const ENDS: usize = 160;
/// See [`ENDS`].
const BETWEEN: usize = 120;

fn act(server: &Server, action: &str, file: &str) -> Result<(u16, Value)> {
    post(server, &format!("/slots/0?action={action}"), &json!({ "filename": file }))
}

fn keeping(fixture: &PromiseFixture<'_>, saves: &str, arguments: &[&str]) -> Result<Server> {
    let keeps = ["-np", "1", "-c", "512", "--slot-save-path", saves];
    fixture.serve(Model::Trained, &[&keeps[..], arguments].concat())
}

/// Saves a file with a small prompt; returns its path and content.
fn saved_by(fixture: &mut PromiseFixture<'_>, server: &Server, saves: &str) -> Result<(PathBuf, Vec<u8>)> {
    ask(server, &plain(&cases::numbered_prompt(1, FEW), 1))?;
    fixture.must_return("save", &act(server, "save", "file")?, 200);
    let path = Path::new(saves).join("file");
    let bytes = disk::read(&path)?;
    Ok((path, bytes))
}

/// Returns all offsets at both ends, and some between.
fn sample(length: usize) -> Vec<usize> {
    let step = (length / BETWEEN).max(1);
    (0..length).filter(|at| *at < ENDS || *at + ENDS >= length || at % step == 0).collect()
}

fn flipped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    damaged[at] ^= 1 << (at % 8);
    damaged
}

/// A flipped bit or a truncation is detected at any offset, before the slot is modified.
pub fn damaged(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let saves = fixture.empty_folder("slots")?;
    let server = keeping(fixture, &saves, &["--kv-paged"])?;
    let (path, bytes) = saved_by(fixture, &server, &saves)?;
    let places = sample(bytes.len());
    let flips = places.iter().map(|at| (format!("a bit of byte {at} flipped"), flipped(&bytes, *at)));
    let cuts = places.iter().map(|at| (format!("cut after {at} bytes"), bytes[..*at].to_vec()));
    let longer = std::iter::once(("a byte more".to_string(), [&bytes[..], &[0]].concat()));
    for (what, damaged) in flips.chain(cuts).chain(longer) {
        disk::write_atomically(&path, &damaged)?;
        fixture.must_return(&what, &act(&server, "restore", "file")?, 400);
        if !fixture.holds_so_far() {
            return Ok(());
        }
    }
    disk::write_atomically(&path, &bytes)?;
    fixture.must_return("the file as it was saved", &act(&server, "restore", "file")?, 200);
    Ok(())
}

/// A restored slot may evict the blocks of idle slots, as a request may; a sequence that can never fit is refused with
/// that reason.
pub fn restored_into_a_full_pool(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let saves = fixture.empty_folder("slots")?;
    let kept = ["-np", "3", "-c", "1024", "--kv-paged", "--slot-save-path", &saves];
    let server = fixture.serve(Model::Trained, &kept)?;
    let fill = |slot: u64, tokens: usize| {
        ask(&server, &with(plain(&cases::numbered_prompt(slot, tokens), 1), "id_slot", slot))
    };
    fill(0, 300)?;
    fixture.must_return("save", &act(&server, "save", "file")?, 200);
    post(&server, "/slots/0?action=erase", &json!({}))?;
    for (slot, tokens) in [(1, 500), (2, 400)] {
        let answer = fill(slot, tokens)?;
        fixture.must_return("a prompt that fits", &answer, 200);
    }
    fixture.must_return("restore beside two idle slots", &act(&server, "restore", "file")?, 200);
    let small = fixture
        .serve(Model::Trained, &["-np", "1", "-c", "256", "--kv-paged", "--slot-save-path", &saves])?;
    let (status, body) = act(&small, "restore", "file")?;
    let says = body.to_string();
    fixture.must(status == 400 && says.contains("5 KV blocks") && says.contains("larger -c"), || {
        format!("a file of 300 tokens in a pool of 4 blocks: returned {status}: {says}")
    });
    Ok(())
}

/// Number of times that a slot is saved twice in a row, mostly within one tick of the file system's clock.
const TWICE: usize = 40;

/// The owner of a file is the owner of the sequence saved last, however soon after the previous save.
pub fn saved_again(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let saves = fixture.empty_folder("slots")?;
    let server = keeping(fixture, &saves, &["--kv-paged"])?;
    let salted = |salt: &str| with(question(1), "cache_salt", salt);
    let mut wrong = 0;
    for _ in 0..TWICE {
        for salt in ["a", "b"] {
            ask(&server, &salted(salt))?;
            fixture.must_return("save", &act(&server, "save", "file")?, 200);
        }
        fixture.must_return("restore", &act(&server, "restore", "file")?, 200);
        let (_, body) = ask(&server, &salted("b"))?;
        let hers = body["timings"]["cache_n"].as_u64() == u64::try_from(PROMPT - 1).ok();
        fixture.must_return("restore", &act(&server, "restore", "file")?, 200);
        wrong += usize::from(!hers);
    }
    fixture.must(wrong == 0, || format!("{wrong} of {TWICE} files had the owner of the save before"));
    Ok(())
}

/// A failed save leaves no files, and an existing file unchanged.
pub fn failed_save(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let saves = fixture.empty_folder("slots")?;
    let server = keeping(fixture, &saves, &["--kv-paged"])?;
    let (path, bytes) = saved_by(fixture, &server, &saves)?;
    let folder = Path::new(&saves).join("folder");
    disk::create_folder(&folder.join("not-empty"))?;
    fixture.must_return("save as a folder's name", &act(&server, "save", "folder")?, 500);
    for name in [".espalier-part-1", ".ESPALIER-PART-1", "x.espalier-owner"] {
        fixture.must_return(&format!("save as {name}"), &act(&server, "save", name)?, 400);
    }
    let left = disk::files_in(Path::new(&saves))?;
    fixture.must(left == ["file"], || format!("after a failed save the folder has {left:?}"));
    fixture.must(disk::read(&path)? == bytes, || "the file that was there before was changed".to_string());
    ours::remove_folder(&folder)?;
    fixture.must_return("the same without the folder", &act(&server, "save", "folder")?, 200);
    Ok(())
}
