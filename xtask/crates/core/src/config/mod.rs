//! PURE: the files that people write and that Espalier generates, as data: `pins.toml`, the lock, flavors, toolchains,
//! models; and the layout of the project.

pub mod attributes;
pub mod flavors;
pub mod intended;
pub mod layout;
pub mod lint_file;
pub mod lock;
pub mod models;
pub mod name;
pub mod overlay;
pub mod paths;
pub mod pins;
pub mod proof;
pub mod reference;
pub mod region;
pub mod snippet;
pub mod toolchains;
pub mod words;
