//! EFFECTS of this crate: compilers and toolchains, archives, packages and images on disk.
#![allow(clippy::disallowed_methods)]

pub mod archive;
pub mod compiler_cache;
pub mod compilers;
pub mod image_files;
pub mod image_read;
pub mod licences;
pub mod node;
pub mod package;
pub mod rust_flags;
pub mod sealed_tar;
pub mod toolchain;
pub mod web_page;
