//! Whether a process is still running.

/// Whether a process with this id exists here; `None` where the system cannot tell.
#[cfg(unix)]
pub fn is_running(pid: u32) -> Option<bool> {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    // Another user's process may not be signalled, so it exists.
    Some(matches!(test_kill_process(pid), Ok(()) | Err(Errno::PERM)))
}

/// Whether a process with this id exists here; `None` where the system cannot tell.
#[cfg(not(unix))]
pub fn is_running(_pid: u32) -> Option<bool> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_running_and_one_that_was_awaited_is_not() {
        assert_eq!(is_running(std::process::id()), Some(true));
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        assert_eq!(is_running(ended.id()), Some(false));
        assert_eq!(is_running(u32::MAX), None);
    }
}
