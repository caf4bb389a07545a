//! The author and the message of a commit in UTF-8, converted as git converts them.

use espalier_series::{NotUtf8, lossy, printable, utf8};
use git2::Commit;

use crate::error::Result;
use crate::sys::machine::process::Run;

/// Author and message of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitText {
    /// The author's name.
    pub name: String,
    /// The author's address.
    pub address: String,
    /// The message.
    pub message: String,
    /// Fields that are neither UTF-8 nor in a charset that the commit names, as `author: J\\xf6rg`: for display only.
    pub not_utf8: Vec<String>,
}

/// Reads `commit`; `git` builds a git command in its repository, called only if the commit names a charset other than
/// UTF-8.
pub(in crate::sys) fn read(git: impl FnOnce() -> Run, commit: &Commit<'_>) -> Result<CommitText> {
    let author = commit.author();
    let raw = [author.name_bytes(), author.email_bytes(), commit.message_raw_bytes()].map(<[u8]>::to_vec);
    let charset = commit.message_encoding().ok().flatten().unwrap_or("UTF-8");
    let [name, address, message] = match charset.eq_ignore_ascii_case("UTF-8") {
        true => raw,
        false => converted(git(), commit)?.unwrap_or(raw),
    };
    let mut not_utf8 = Vec::new();
    if std::str::from_utf8(&name).is_err() || std::str::from_utf8(&address).is_err() {
        not_utf8.push(format!("author: {}", printable(&[&name[..], b" <", &address, b">"].concat())));
    }
    if let Err(NotUtf8 { line, found }) = utf8(&message) {
        not_utf8.push(format!("message, line {line}: {found}"));
    }
    let [name, address, message] = [name, address, message].map(|bytes| lossy(&bytes).into_owned());
    Ok(CommitText { name, address, message, not_utf8 })
}

/// Returns the three fields converted to UTF-8; git leaves bytes of an unknown charset as they are.
fn converted(git: Run, commit: &Commit<'_>) -> Result<Option<[Vec<u8>; 3]>> {
    let stdout = git
        .args([
            "log",
            "-1",
            "--no-show-signature",
            "--no-notes",
            "--encoding=UTF-8",
            "--format=%an%x00%ae%x00%B",
        ])
        .arg(commit.id().to_string())
        .success()?;
    let mut fields = stdout.splitn(3, |byte| *byte == 0).map(<[u8]>::to_vec);
    Ok(fields.next().and_then(|name| Some([name, fields.next()?, fields.next()?])))
}
