//! Reasons why a patch must not name a path.

use std::fmt;

use serde::Serialize;

/// The reason why a path was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathRefusal {
    /// The path is empty.
    Empty,
    /// It starts with `/`.
    Absolute,
    /// A component is empty: `a//b` or `a/`.
    EmptyComponent,
    /// A component is `.` or `..`.
    DotComponent,
    /// A component is `.git`, or a name that some file system treats as `.git`.
    GitFolder,
    /// It holds a backslash, which separates folders on Windows.
    Backslash,
    /// It holds a colon: a drive letter or an alternate stream on Windows.
    Colon,
    /// It holds a NUL or another control character.
    ControlCharacter,
    /// It contains an invisible character, or one that changes the direction of others.
    HiddenCharacter,
    /// It contains a decomposed character, such as `e` and a combining accent, which macOS treats as the single
    /// character `é`.
    LetterInParts,
    /// A component ends with a dot or a space, which Windows drops.
    TrailingDotOrSpace,
    /// A component is a device name on Windows, such as `nul` or `aux.txt`.
    WindowsDevice,
    /// It is longer than 4096 bytes.
    TooLong,
    /// A component is longer than 255 bytes.
    ComponentTooLong,
    /// It has more than 100 components.
    TooDeep,
}

impl fmt::Display for PathRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            PathRefusal::Empty => "an empty path",
            PathRefusal::Absolute => "an absolute path",
            PathRefusal::EmptyComponent => "a path with a double or a trailing slash",
            PathRefusal::DotComponent => "a path with a `.` or `..` component",
            PathRefusal::GitFolder => "a path into `.git`, or into what some systems take for it",
            PathRefusal::Backslash => "a path with a backslash (Windows takes it for the end of a folder, and writes elsewhere)",
            PathRefusal::Colon => "a path with a colon (a drive letter or an alternate stream)",
            PathRefusal::ControlCharacter => "a path with a control character",
            PathRefusal::HiddenCharacter => "a path with a letter that is not shown or turns others around",
            PathRefusal::LetterInParts => {
                "a path with a letter in parts (macOS takes it for the composed letter)"
            }
            PathRefusal::TrailingDotOrSpace => {
                "a path component that ends with a dot or a space (Windows drops it, and writes to another file)"
            }
            PathRefusal::WindowsDevice => "a path component that is a device on Windows",
            PathRefusal::TooLong => "a path of more than 4096 bytes",
            PathRefusal::ComponentTooLong => "a path component of more than 255 bytes",
            PathRefusal::TooDeep => "a path of more than 100 folders",
        })
    }
}
