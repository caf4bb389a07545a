//! SIGHUP: the files of the options are read, or opened, again.

use std::sync::Arc;

use tokio::runtime::Runtime;

use crate::abi::{LOG_ERROR, LOG_INFO};
use crate::core::Core;
use crate::options::Options;
use crate::record::Journal;

/// The files, and where to report.
#[derive(Clone, Debug)]
pub struct Files {
    /// The core, which has the server's log.
    pub core: Core,
    /// Has the keys.
    pub options: Arc<Options>,
    /// Has the access log.
    pub journal: Arc<Journal>,
}

impl Files {
    /// Reads the keys again, and opens the access log again: last, since it waits for a disk that is too slow.
    pub fn reload(&self) {
        if self.options.keys.has_file() {
            match self.options.keys.reload() {
                Ok(count) => self.core.log(LOG_INFO, &format!("{count} API keys are accepted")),
                Err(reason) => {
                    self.core.log(LOG_ERROR, &format!("the API keys stay as they were: {reason}"));
                }
            }
        }
        if let Some(log) = self.journal.log() {
            log.reopen();
        }
    }
}

/// Handles the signal from now on. Elsewhere than on Unix there is none.
///
/// # Errors
///
/// The handler cannot be set.
#[cfg(unix)]
pub fn watch(runtime: &Runtime, files: Files) -> Result<(), String> {
    use tokio::signal::unix::{SignalKind, signal};

    let _inside = runtime.enter();
    let mut hangup =
        signal(SignalKind::hangup()).map_err(|error| format!("no handler of SIGHUP: {error}"))?;
    runtime.spawn(async move {
        while hangup.recv().await.is_some() {
            let files = files.clone();
            let _ = tokio::task::spawn_blocking(move || files.reload()).await;
        }
    });
    Ok(())
}

/// As above.
///
/// # Errors
///
/// None.
#[cfg(not(unix))]
pub fn watch(_runtime: &Runtime, _files: Files) -> Result<(), String> {
    Ok(())
}
