//! Target platforms.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An operating system and a CPU architecture, as named by Rust's `std::env::consts` and by CI runners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Platform {
    /// Linux on x86-64.
    #[serde(rename = "linux-x86_64")]
    LinuxX86,
    /// Linux on 64-bit Arm.
    #[serde(rename = "linux-aarch64")]
    LinuxArm,
    /// macOS on Apple's processors.
    #[serde(rename = "macos-aarch64")]
    MacosArm,
    /// Windows on x86-64.
    #[serde(rename = "windows-x86_64")]
    WindowsX86,
}

impl Platform {
    /// Every platform that a flavor may name.
    pub const ALL: [Platform; 4] =
        [Platform::LinuxX86, Platform::LinuxArm, Platform::MacosArm, Platform::WindowsX86];

    /// The platform that this program was compiled for; `None` if it is not one of [`Platform::ALL`].
    #[must_use]
    pub fn of_this_machine() -> Option<Platform> {
        let here = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
        Platform::ALL.into_iter().find(|platform| platform.as_str() == here)
    }

    /// `linux-x86_64` and the like.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Platform::LinuxX86 => "linux-x86_64",
            Platform::LinuxArm => "linux-aarch64",
            Platform::MacosArm => "macos-aarch64",
            Platform::WindowsX86 => "windows-x86_64",
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
