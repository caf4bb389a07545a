//! Files and folders: every write is atomic, and every error names the path and a remedy.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use espalier_series::{NotUtf8, utf8};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// Returns the error for `io_error` met while doing `what` to `path`; a full disk has its own message.
pub fn explain(what: &str, path: &Path, io_error: &io::Error) -> Error {
    let error = Error::environment(format!("could not {what} `{}`", path.display())).detail(reason(io_error));
    match io_error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => error.hint(FREE_SOME),
        io::ErrorKind::FileTooLarge => {
            error.hint("raise the limit of file sizes, such as `ulimit -f`, then run the same command again")
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            error.hint("make the folder writable for you, then run the same command again")
        }
        _ => error,
    }
}

/// Hint for a full disk.
pub const FREE_SOME: &str =
    "free some disk space and run the same command again; it resumes where it stopped";

/// Returns `error`, or "the disk of `folder` is full" if that is its cause.
pub fn blame_full_disk(folder: &Path, error: Error) -> Error {
    let is_reported = std::iter::once(&error.what).chain(&error.details).any(|text| says_full(text));
    if error.kind != crate::error::Kind::Environment || !(is_reported || is_full(folder)) {
        return error;
    }
    let full = Error::environment(format!("the disk of `{}` is full", folder.display())).hint(FREE_SOME);
    std::iter::once(error.what).chain(error.details).fold(full, Error::detail)
}

/// Whether `text` contains the message for a full disk of the C library, npm or pip.
fn says_full(text: &str) -> bool {
    ["No space left", "ENOSPC", "no space left on device"].iter().any(|words| text.contains(words))
}

/// A disk with less free space than this counts as full: a page for each of a few small files.
#[cfg(unix)]
const NOTHING: u64 = 64 * 1024;

/// Whether the disk of `folder` is full.
#[cfg(unix)]
pub fn is_full(folder: &Path) -> bool {
    rustix::fs::statvfs(folder).is_ok_and(|disk| disk.f_bavail * disk.f_frsize < NOTHING)
}

/// Whether the disk of `folder` is full; never checked on this platform.
#[cfg(not(unix))]
pub fn is_full(_folder: &Path) -> bool {
    false
}

/// Returns the operating system's message without the error number.
pub fn reason(io_error: &io::Error) -> String {
    let text = io_error.to_string();
    let words = text.split(" (os error").next().unwrap_or(&text);
    words.to_string()
}

/// Reads the whole file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    refuse_endless(path)?;
    fs::read(path).map_err(|error| explain("read", path, &error))
}

/// Reads the whole file; `None` if it does not exist.
pub fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>> {
    refuse_endless(path)?;
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(explain("read", path, &error)),
    }
}

/// Opening a pipe blocks until another process writes to it, and a device may never end: neither is opened.
fn refuse_endless(path: &Path) -> Result<()> {
    match fs::metadata(path) {
        Ok(meta) if !meta.is_file() && !meta.is_dir() => {
            Err(Error::usage(format!("`{}` is a pipe, device or socket, not a file", path.display()))
                .hint(format!("replace it with a file, or remove it: ls -lL {}", path.display())))
        }
        _ => Ok(()),
    }
}

/// Reads the whole file as text.
pub fn read_text(path: &Path) -> Result<String> {
    text_of(path, read(path)?)
}

/// As [`read_text`]; `None` if the file does not exist.
pub fn read_text_if_there(path: &Path) -> Result<Option<String>> {
    read_if_there(path)?.map(|bytes| text_of(path, bytes)).transpose()
}

fn text_of(path: &Path, bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let NotUtf8 { line, found } =
            utf8(error.as_bytes()).err().unwrap_or(NotUtf8 { line: 1, found: String::new() });
        Error::usage(format!("`{}` is not UTF-8 text", path.display()))
            .detail(format!("line {line}: {found}"))
    })
}

/// Writes `bytes` so that another process, or the next run after a kill, sees either the old content or the new,
/// never a mixture.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    create_folder(folder)?;
    let fail = |error: io::Error| explain("write", path, &error);
    let mut file = temporary_file().tempfile_in(folder).map_err(fail)?;
    file.write_all(bytes).map_err(fail)?;
    file.persist(path).map_err(|error| fail(error.error))?;
    Ok(())
}

/// Returns a builder of files with the permissions that the umask allows, not 0600: these files are committed,
/// packaged and shipped.
fn temporary_file() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY_PREFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder
}

/// Returns an error unless a file can be written to `path`, which a person named: its folder is not created.
pub fn refuse_as_output(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() || path.file_name().is_none() {
        return Err(Error::usage(format!("`{}` is a folder, expected a file", path.display()))
            .hint(format!("name a file in it: {}", path.join("page.html").display())));
    }
    if !folder.is_dir() {
        return Err(Error::usage(format!("there is no folder `{}`", folder.display()))
            .hint(format!("mkdir -p {}", folder.display())));
    }
    Ok(())
}

/// Prefix of our temporary files, so that a later run can remove those that a killed run left.
pub const TEMPORARY_PREFIX: &str = ".espalier-tmp-";

/// Whether `name` is that of one of our temporary files or folders.
pub fn is_temporary(name: &str) -> bool {
    name.starts_with(TEMPORARY_PREFIX)
}

/// Writes only if the content differs, so that the modification time stays meaningful. Returns whether it wrote.
pub fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<bool> {
    if read_if_there(path)?.as_deref() == Some(bytes) {
        return Ok(false);
    }
    write_atomically(path, bytes)?;
    Ok(true)
}

/// Creates the folder and its parents.
pub fn create_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|error| explain("create the folder", path, &error))
}

/// Removes one file; a missing one is not an error.
pub fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(explain("remove", path, &error)),
        _ => Ok(()),
    }
}

/// Returns the folders directly in `folder`; none if it does not exist.
pub fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// Returns the sorted names of files and links directly in `folder`.
pub fn files_in(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).map_err(|error| explain("list", folder, &error))?;
    let files = entries.flatten().filter(|entry| !entry.path().is_dir());
    let mut names: Vec<String> =
        files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

/// Whether `path` exists, also as a broken link.
pub fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Creates an empty scratch folder that is removed when dropped.
pub fn scratch_folder(parent: &Path, purpose: &str) -> Result<tempfile::TempDir> {
    create_folder(parent)?;
    tempfile::Builder::new()
        .prefix(&format!("{purpose}-"))
        .tempdir_in(parent)
        .map_err(|error| explain("create a scratch folder in", parent, &error))
}

/// Returns every file below `folder`, sorted, as paths relative to it; links count as files and are not followed.
pub fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect_files(folder, Path::new(""), &mut found)?;
    found.sort();
    Ok(found)
}

fn collect_files(folder: &Path, below: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let fail = |error: io::Error| explain("list", folder, &error);
    for entry in fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let relative = below.join(entry.file_name());
        if entry.file_type().map_err(fail)?.is_dir() {
            collect_files(&entry.path(), &relative, found)?;
        } else {
            found.push(relative);
        }
    }
    Ok(())
}

/// Returns the size of a file in bytes; of a link, not that of its target.
pub fn size(path: &Path) -> Result<u64> {
    let meta = fs::symlink_metadata(path).map_err(|error| explain("look at", path, &error))?;
    Ok(if meta.is_file() { meta.len() } else { 0 })
}

/// Returns the target of a link; `None` if `path` is not a link.
pub fn link_target(path: &Path) -> Result<Option<String>> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
    let target = is_link.then(|| fs::read_link(path)).transpose();
    let target = target.map_err(|error| explain("read the link", path, &error))?;
    Ok(target.map(|target| target.to_string_lossy().into_owned()))
}

/// Copies a file, or a link as a link.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(parent) = to.parent() {
        create_folder(parent)?;
    }
    #[cfg(unix)]
    if let Ok(target) = fs::read_link(from) {
        return std::os::unix::fs::symlink(target, to).map_err(|error| explain("link", to, &error));
    }
    fs::copy(from, to).map(drop).map_err(|error| explain("copy to", to, &error))
}

/// Copies every file and link below `from` to the same paths below `to`.
pub fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    files_below(from)?.iter().try_for_each(|file| copy(&from.join(file), &to.join(file)))
}

/// Returns the size in bytes of all files below `folder`; a file that cannot be read, or is removed meanwhile, counts
/// as 0.
pub fn size_below(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => size_below(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Returns the sha256 in lower-case hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns the [`sha256`] of a file; `None` if it does not exist.
pub fn digest_if_there(path: &Path) -> Result<Option<String>> {
    Ok(read_if_there(path)?.map(|bytes| sha256(&bytes)))
}

/// Returns the sha256 of a file that may be large, in lower-case hexadecimal.
pub fn sha256_of_file(path: &Path) -> Result<String> {
    refuse_endless(path)?;
    let fail = |error: io::Error| explain("read", path, &error);
    sha256_of(&mut fs::File::open(path).map_err(fail)?).map_err(fail)
}

/// Returns the sha256 of everything that `stream` yields, in lower-case hexadecimal.
pub fn sha256_of(stream: &mut impl io::Read) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(hex(&hasher.finalize())),
            count => hasher.update(&buffer[..count]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether `path` is a program that can be started.
pub fn is_program(path: &Path) -> bool {
    path.is_file() && (is_executable(path) || cfg!(windows))
}

/// Whether the mode of the file is executable; always false where the system has no such mode.
pub fn is_executable(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

/// Makes the file executable for every user who may read it; does nothing where the system has no such mode.
pub fn make_executable(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let fail = |error: io::Error| explain("make executable", path, &error);
        let mode = fs::metadata(path).map_err(fail)?.permissions().mode();
        fs::set_permissions(path, fs::Permissions::from_mode(mode | (mode & 0o444) >> 2)).map_err(fail)?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Returns the path of `program` on PATH.
pub fn find_program(program: &str) -> Option<PathBuf> {
    if program.contains(std::path::MAIN_SEPARATOR) {
        return Some(PathBuf::from(program)).filter(|path| is_program(path));
    }
    let name = format!("{program}{}", std::env::consts::EXE_SUFFIX);
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(&name)).find(|path| is_program(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_recognised_in_the_words_of_other_programs() {
        let folder = tempfile::tempdir().unwrap();
        for message in ["npm failed: code ENOSPC", "pip failed: [Errno 28] No space left on device"] {
            let error =
                blame_full_disk(folder.path(), Error::environment("`npm pack` failed").detail(message));
            assert!(error.what.starts_with("the disk of `") && error.what.ends_with("` is full"), "{error}");
            assert!(error.to_string().contains(message), "{error}");
        }
        let other =
            blame_full_disk(folder.path(), Error::environment("`npm pack` failed").detail("code E404"));
        assert_eq!(other.what, "`npm pack` failed");
    }

    #[test]
    fn writing_the_same_content_leaves_the_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b.txt");
        assert!(write_if_changed(&path, b"one").unwrap());
        assert!(!write_if_changed(&path, b"one").unwrap());
        assert!(write_if_changed(&path, b"two").unwrap());
        assert_eq!(read_text(&path).unwrap(), "two");
        assert_eq!(files_below(folder.path()).unwrap(), [PathBuf::from("a/b.txt")]);
    }

    #[test]
    fn a_full_disk_says_so() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let text = explain("write", Path::new("x"), &full).to_string();
        assert!(text.contains("could not write `x`") && text.contains("free some disk space"), "{text}");
    }

    #[test]
    fn the_digest_is_sha256() {
        assert_eq!(sha256(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
