//! The C ABI of [`crate::kv_gather`]: the declarations of `include/espalier_kv_gather.h`.

use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

use crate::ffi::guarded;
use crate::kv_gather::{self, Mode, Node};

/// The environment variable that, set to 1, sets hints for every backend and node.
const CHECK_VARIABLE: &str = "ESPALIER_KV_GATHER_CHECK";

fn mode() -> Mode {
    static MODE: OnceLock<Mode> = OnceLock::new();
    let is_check = || std::env::var_os(CHECK_VARIABLE).is_some_and(|value| value == "1");
    *MODE.get_or_init(|| if is_check() { Mode::Check } else { Mode::Table })
}

/// Returns the cells of the blocks whose bits are set; `UINT32_MAX` for a null pointer.
///
/// # Safety
///
/// `blocks` is null or points to `count` words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_kv_gather_cells(blocks: *const u32, count: usize) -> u32 {
    guarded(u32::MAX, || {
        if blocks.is_null() {
            return u32::MAX;
        }
        // SAFETY: `blocks` is not null, and per this function's contract it points to `count` words.
        kv_gather::cells_of_blocks(unsafe { std::slice::from_raw_parts(blocks, count) })
    })
}

/// Returns the hint of a step in which no token sees more than `cells` of `cache_cells` cells; 0: none.
#[unsafe(no_mangle)]
pub extern "C" fn espalier_kv_gather_hint(cells: u32, cache_cells: u32, tokens: u32) -> u32 {
    guarded(0, || kv_gather::hint(cells, cache_cells, tokens, mode()))
}

/// Returns 1 if the backend gathers cells for any node, else 0, also for a null pointer.
///
/// # Safety
///
/// `backend` is null or points to a string that ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_kv_gather_has_backend(backend: *const c_char) -> i32 {
    guarded(0, || {
        // SAFETY: per this function's contract `backend` is null or points to a string.
        let name = unsafe { text(backend) };
        i32::from(name.is_some_and(|name| kv_gather::has_backend(name, mode())))
    })
}

/// Returns 1 if the backend that computes `node` uses the hint and is faster with it, else 0, also for null pointers.
///
/// # Safety
///
/// `backend` is null or points to a string that ends with a NUL; `node` is null or points to a valid
/// `struct espalier_kv_gather_node`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_kv_gather_is_used(
    backend: *const c_char,
    node: *const Node,
    hint: u32,
) -> i32 {
    guarded(0, || {
        // SAFETY: per this function's contract `backend` is null or points to a string.
        let name = unsafe { text(backend) };
        // SAFETY: per this function's contract `node` is null or points to a valid node.
        let node = unsafe { node.as_ref() };
        let (Some(name), Some(node)) = (name, node) else { return 0 };
        i32::from(kv_gather::is_used(name, node, hint, mode()))
    })
}

/// # Safety
///
/// `text` is null or points to a string that ends with a NUL and outlives the result.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: `text` is not null, and per this function's contract it points to a string that outlives the result.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}
