//! The C ABI, and its guard: a panic must not unwind into C++ frames, which is undefined behaviour.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use hyper::Method;

use crate::abi::{ABI_VERSION, LOG_ERROR, RawOptions, Table, Text};
use crate::core::Core;
use crate::options::Options;
use crate::server::Front;
use crate::wake;

/// Runs `body`; a panic inside of it becomes `neutral`.
fn guarded<T>(neutral: T, body: impl FnOnce() -> T) -> T {
    // `AssertUnwindSafe` is sound here: after a panic a front can only be stopped, which relies on atomics and locks.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(neutral)
}

/// Returns `ESPALIER_FRONT_ABI` of this library.
#[unsafe(no_mangle)]
pub extern "C" fn espalier_front_abi() -> u32 {
    ABI_VERSION
}

/// Opens a front; null if the options are invalid.
///
/// # Safety
///
/// `options` and `table` are null or point to valid structs, whose arrays and texts are valid; the functions of the
/// table keep the rules of the header until the front is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_front_open(
    options: *const RawOptions,
    table: *const Table,
    core: *mut c_void,
) -> *mut Front {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: per this function's contract they are null or valid.
        let (Some(options), Some(table)) = (unsafe { options.as_ref() }, unsafe { table.as_ref() }) else {
            return std::ptr::null_mut();
        };
        // SAFETY: per this function's contract the functions keep the rules for as long as the front is open.
        let core = unsafe { Core::new(*table, core) };
        // SAFETY: per this function's contract texts and arrays are valid.
        match unsafe { Options::read(options) }.and_then(|options| Front::new(core, options)) {
            Ok(front) => Box::into_raw(Box::new(front)),
            Err(reason) => {
                core.log(LOG_ERROR, &format!("cannot initialize the transport: {reason}"));
                std::ptr::null_mut()
            }
        }
    })
}

/// Adds a route; returns its number, or `u32::MAX`.
///
/// # Safety
///
/// `front` is null or was returned by [`espalier_front_open`], is not closed, and no other thread uses it; the texts are
/// valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_front_route(
    front: *mut Front,
    method: Text,
    path: Text,
    flags: u32,
) -> u32 {
    guarded(u32::MAX, || {
        // SAFETY: per this function's contract it is null or this thread's alone.
        let Some(front) = (unsafe { front.as_mut() }) else { return u32::MAX };
        // SAFETY: per this function's contract the texts are valid.
        let (method, path) = unsafe { (method.bytes(), path.bytes()) };
        let Ok(method) = Method::from_bytes(method) else { return u32::MAX };
        front.route(method, path, flags).unwrap_or(u32::MAX)
    })
}

/// Binds all addresses and serves; returns 0, or -1.
///
/// # Safety
///
/// `front` is as for [`espalier_front_route`]; `port` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_front_listen(front: *mut Front, port: *mut u32) -> i32 {
    guarded(-1, || {
        // SAFETY: per this function's contract it is null or this thread's alone.
        let Some(front) = (unsafe { front.as_mut() }) else { return -1 };
        match front.listen() {
            Ok(bound) => {
                // SAFETY: per this function's contract it is null or writable.
                if let Some(port) = unsafe { port.as_mut() } {
                    *port = u32::from(bound);
                }
                0
            }
            Err(reason) => {
                front.log_error(&format!("cannot listen on {reason}"));
                -1
            }
        }
    })
}

/// Wakes the stream that has this token.
#[unsafe(no_mangle)]
pub extern "C" fn espalier_front_wake(token: u64) {
    guarded((), || wake::wake(token));
}

/// Lets connections finish their request.
///
/// # Safety
///
/// `front` is null or was returned by [`espalier_front_open`], and is not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_front_drain(front: *const Front, timeout_ms: u32) {
    guarded((), || {
        // SAFETY: per this function's contract it is null or valid; a front that listens changes only by atomics.
        if let Some(front) = unsafe { front.as_ref() } {
            front.drain(Duration::from_millis(u64::from(timeout_ms)));
        }
    });
}

/// Closes listeners and connections.
///
/// # Safety
///
/// As for [`espalier_front_drain`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_front_stop(front: *const Front) {
    guarded((), || {
        // SAFETY: as in `espalier_front_drain`.
        if let Some(front) = unsafe { front.as_ref() } {
            front.stop();
        }
    });
}

/// Stops, waits until all calls are freed, and frees the front.
///
/// # Safety
///
/// `front` is null or was returned by [`espalier_front_open`]; nothing uses it afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_front_close(front: *mut Front) {
    guarded((), || {
        if !front.is_null() {
            // SAFETY: per this function's contract it came from `Box::into_raw`, and this is its last use.
            unsafe { Box::from_raw(front) }.close();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::guarded;

    #[test]
    fn a_panic_becomes_the_neutral_value() {
        assert_eq!(guarded(7, || panic!("this panic is part of the test")), 7);
    }
}
