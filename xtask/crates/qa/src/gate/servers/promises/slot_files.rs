//! Slot files: only intact files are restored, only for their owner, and no file content can crash the server.

use std::path::{Path, PathBuf};

use espalier_core::error::{Error, Result};
use espalier_core::http::Request;
use espalier_core::sys::machine::{disk, owned};
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::asking::{LIMIT, ask, plain, post, with};
use super::fixture::{Model, PromiseFixture};
use super::tenants::{ALICE, BOB, PROMPT, question};
use crate::serving::cases;

/// Length of the saved prompt, in tokens: short, so that the file is small.
const FEW: usize = 5;

/// Number of bytes at either end of a file that are all damaged, and the approximate number of those between.
const ENDS: usize = 160;
/// See [`ENDS`].
const BETWEEN: usize = 120;

fn act(server: &Server, action: &str, file: &str) -> Result<(u16, Value)> {
    act_as(server, None, action, file)
}

fn act_as(server: &Server, key: Option<&str>, action: &str, file: &str) -> Result<(u16, Value)> {
    let request = Request::post(format!("/slots/0?action={action}"), json!({ "filename": file }));
    server.json(&request.with_key(key), LIMIT)
}

fn keeping(fixture: &PromiseFixture<'_>, saves: &str, arguments: &[&str]) -> Result<Server> {
    let keeps = ["-np", "1", "-c", "512", "--slot-save-path", saves];
    fixture.serve(Model::Trained, &[&keeps[..], arguments].concat())
}

/// Saves a file with a small prompt and restores it, comparing the sizes that the server returns with the file's; returns
/// its path and content.
fn saved_by(
    fixture: &mut PromiseFixture<'_>,
    server: &Server,
    key: Option<&str>,
    saves: &str,
) -> Result<(PathBuf, Vec<u8>)> {
    let request = Request::post("/completion", plain(&cases::numbered_prompt(1, FEW), 1));
    server.json(&request.with_key(key), LIMIT)?;
    let path = Path::new(saves).join("file");
    for (action, field) in [("save", "n_written"), ("restore", "n_read")] {
        let answer = act_as(server, key, action, "file")?;
        fixture.must_return(action, &answer, 200);
        let (count, size) = (&answer.1[field], disk::read(&path)?.len());
        fixture.must(count == size, || format!("{field} is {count}, and the file has {size} bytes"));
    }
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

/// A flipped bit or a truncation is detected at any offset, before the slot is modified, by every kind of server.
pub fn damaged(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let two_keys = format!("{ALICE},{BOB}");
    let modes: [&[&str]; 4] =
        [&["--kv-paged"], &[], &["--api-key", ALICE], &["--kv-paged", "--api-key", &two_keys]];
    modes.into_iter().try_for_each(|mode| damaged_with(fixture, mode))
}

fn damaged_with(fixture: &mut PromiseFixture<'_>, mode: &[&str]) -> Result<()> {
    let saves = fixture.empty_folder("slots")?;
    let key = mode.contains(&"--api-key").then_some(ALICE);
    let server = keeping(fixture, &saves, mode)?;
    let (path, bytes) = saved_by(fixture, &server, key, &saves)?;
    let places = sample(bytes.len());
    let flips = places.iter().map(|at| (format!("a bit of byte {at} flipped"), flipped(&bytes, *at)));
    let cuts = places.iter().map(|at| (format!("cut after {at} bytes"), bytes[..*at].to_vec()));
    let longer = std::iter::once(("a byte more".to_string(), [&bytes[..], &[0]].concat()));
    for (what, damaged) in flips.chain(cuts).chain(longer) {
        disk::write_atomically(&path, &damaged)?;
        fixture.must_return(&format!("{mode:?}, {what}"), &act_as(&server, key, "restore", "file")?, 400);
        if !fixture.holds_so_far() {
            return Ok(());
        }
    }
    disk::write_atomically(&path, &bytes)?;
    let answer = act_as(&server, key, "restore", "file")?;
    fixture.must_return(&format!("{mode:?}, the file as it was saved"), &answer, 200);
    Ok(())
}

/// A file of a stock server has no record and no digest, and is restored where there is at most one key.
pub fn of_a_stock_server(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for mode in [&["--kv-paged"][..], &[]] {
        let saves = fixture.empty_folder("slots")?;
        let server = keeping(fixture, &saves, mode)?;
        let (path, bytes) = saved_by(fixture, &server, None, &saves)?;
        disk::write_atomically(&path, &as_stock_saves_it(&bytes)?)?;
        let answer = act(&server, "restore", "file")?;
        fixture.must_return(&format!("{mode:?}, a file without a record"), &answer, 200);
        let restored = answer.1["n_restored"].as_u64();
        fixture.must(restored == u64::try_from(FEW).ok(), || {
            format!("{mode:?}: {restored:?} tokens were restored instead of {FEW}")
        });
    }
    Ok(())
}

/// Returns the content that a stock server would have saved: without the record at the beginning of the tokens, and
/// without the digest at the end.
pub fn as_stock_saves_it(bytes: &[u8]) -> Result<Vec<u8>> {
    // Magic, version and number of words; then, as words, the two marks of a record and the length of its text.
    let word = |at: usize| bytes.get(4 * at..4 * at + 4).map(|four| [four[0], four[1], four[2], four[3]]);
    let (Some(count), Some(MARK), Some(length)) = (word(2), word(4), word(5)) else {
        return Err(Error::no("the slot file has no record"));
    };
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    let words = 3 + length.div_ceil(4);
    let count = u32::try_from(words).ok().and_then(|words| u32::from_le_bytes(count).checked_sub(words));
    let end = bytes.len().checked_sub(TRAILER.len() + DIGEST);
    match (count, end) {
        (Some(count), Some(end)) if 12 + 4 * words <= end && bytes[end..].starts_with(TRAILER) => {
            Ok([&bytes[..8], &count.to_le_bytes()[..], &bytes[12 + 4 * words..end]].concat())
        }
        _ => Err(Error::no("the slot file has no digest, or its record is longer than its tokens")),
    }
}

/// The second mark of a record, in place of a version of the packed list of tokens.
const MARK: [u8; 4] = *b"ESP1";

/// The beginning of the last line of a file; hexadecimal digits of a SHA-256 follow.
const TRAILER: &[u8] = b"espalier slot digest 1 ";

/// Number of those digits.
const DIGEST: usize = 64;

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
    let (path, bytes) = saved_by(fixture, &server, None, &saves)?;
    let folder = Path::new(&saves).join("folder");
    disk::create_folder(&folder.join("not-empty"))?;
    fixture.must_return("save as a folder's name", &act(&server, "save", "folder")?, 400);
    for name in [".espalier-part-1", ".ESPALIER-PART-1", "x.espalier-owner"] {
        fixture.must_return(&format!("save as {name}"), &act(&server, "save", name)?, 400);
    }
    let left = disk::files_in(Path::new(&saves))?;
    fixture.must(left == ["file"], || format!("after a failed save the folder has {left:?}"));
    fixture.must(disk::read(&path)? == bytes, || "the file that was there before was changed".to_string());
    owned::remove_folder(&folder)?;
    fixture.must_return("the same without the folder", &act(&server, "save", "folder")?, 200);
    Ok(())
}

/// Maximum size of a file, for [`PromiseFixture::serve_with_file_limit`]: 80 KiB, or 160 KiB in some shells. That is more
/// than a log and the file of [`FEW`] tokens, and less than the file of [`PROMPT`] tokens, which has 166 KiB.
const SPACE: usize = 160;

/// A save that the disk has no space for returns an error and leaves no file; a former file of that name and the slot
/// stay as they were. A limit of file sizes stands for the full disk.
pub fn save_to_a_full_disk(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    if !fixture.arose(cfg!(unix), || "this system has no limit of file sizes".to_string()) {
        return Ok(());
    }
    [&["--kv-paged"][..], &[]].into_iter().try_for_each(|mode| full_disk_with(fixture, mode))
}

fn full_disk_with(fixture: &mut PromiseFixture<'_>, mode: &[&str]) -> Result<()> {
    let saves = fixture.empty_folder("slots")?;
    let keeps = ["-np", "1", "-c", "512", "--slot-save-path", &saves];
    let server = fixture.serve_with_file_limit(Model::Trained, &[&keeps[..], mode].concat(), SPACE)?;
    let (path, bytes) = saved_by(fixture, &server, None, &saves)?;
    ask(&server, &question(2))?;
    for file in ["file", "other"] {
        let (status, body) = act(&server, "save", file)?;
        fixture.must(status == 500 && body.to_string().contains("disk full"), || {
            format!("{mode:?}: a save as {file} without space returned {status}: {body}")
        });
    }
    let left = disk::files_in(Path::new(&saves))?;
    fixture.must(left == ["file"], || format!("{mode:?}: after saves without space the folder has {left:?}"));
    fixture.must(disk::read(&path)? == bytes, || format!("{mode:?}: the former file was changed"));
    let answer = ask(&server, &question(2))?;
    fixture.must_have_found(&format!("{mode:?}: the slot after saves without space"), &answer, PROMPT - 1);
    let answer = act(&server, "restore", "file")?;
    fixture.must_return(&format!("{mode:?}: the former file restored"), &answer, 200);
    let restored = answer.1["n_restored"].as_u64();
    fixture.must(restored == u64::try_from(FEW).ok(), || {
        format!("{mode:?}: {restored:?} tokens were restored instead of {FEW}")
    });
    fixture.must_return(&format!("{mode:?}: a save with space"), &act(&server, "save", "other")?, 200);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with a record of `text`, `tokens` words after it, and some state.
    fn saved(text: &[u8], tokens: &[i32]) -> Vec<u8> {
        let mut record =
            [&(-1_i32).to_le_bytes()[..], &MARK, &(text.len() as u32).to_le_bytes(), text].concat();
        record.resize(record.len().next_multiple_of(4), 0);
        let count = (record.len() / 4 + tokens.len()) as u32;
        let tokens: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
        let head = [&b"qsgg"[..], &2_u32.to_le_bytes(), &count.to_le_bytes()].concat();
        [&head[..], &record, &tokens, b"state", TRAILER, &[b'0'; DIGEST]].concat()
    }

    #[test]
    fn a_file_without_record_and_digest_is_that_of_a_stock_server() {
        for text in [&b""[..], b"a", b"a\nb\nc\nd\n"] {
            let stock = as_stock_saves_it(&saved(text, &[7, 8])).unwrap();
            let expected =
                [&b"qsgg"[..], &[2, 0, 0, 0], &[2, 0, 0, 0], &[7, 0, 0, 0], &[8, 0, 0, 0], b"state"];
            assert_eq!(stock, expected.concat(), "{text:?}");
            assert!(as_stock_saves_it(&stock).is_err(), "it has no record any more");
        }
        let file = saved(b"abc", &[7]);
        assert!(as_stock_saves_it(&file[..file.len() - 1]).is_err());
        assert!(as_stock_saves_it(&[]).is_err());
    }
}
