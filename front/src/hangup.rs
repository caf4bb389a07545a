//! SIGHUP: the files of the options are read, or opened, again.

use std::sync::Arc;

use tokio::runtime::Runtime;

use crate::abi::{LOG_ERROR, LOG_INFO, LOG_WARNING};
use crate::core::Core;
use crate::options::Options;
use crate::record::Journal;
use crate::tls::Tls;

/// The files, and where to report.
#[derive(Clone, Debug)]
pub struct Files {
    /// The core, which has the server's log.
    pub core: Core,
    /// Has the keys, and TLS.
    pub options: Arc<Options>,
    /// Has the access log.
    pub journal: Arc<Journal>,
}

impl Files {
    /// Whether there is any.
    #[must_use]
    pub fn exist(&self) -> bool {
        self.options.keys.has_file() || self.options.tls.is_some() || self.journal.log().is_some()
    }

    /// Reads keys and TLS again, and opens the access log again: last, since it waits for a disk that is too slow.
    pub fn reload(&self) {
        if self.options.keys.has_file() {
            let keys = self.options.keys.reload();
            self.report("API keys", keys.map(|count| format!("{count} API keys are accepted")));
        }
        if let Some(tls) = &self.options.tls {
            self.report("TLS files", tls.reload().map(|()| "new connections use the TLS files".to_string()));
            self.warn();
        }
        if let Some(log) = self.journal.log() {
            log.reopen();
        }
    }

    fn report(&self, files: &str, read: Result<String, String>) {
        match read {
            Ok(message) => self.core.log(LOG_INFO, &message),
            Err(reason) => self
                .core
                .log(LOG_ERROR, &format!("cannot reload the {files}, keeping the current ones: {reason}")),
        }
    }

    /// Logs a file that others than the server can read, but should not.
    pub fn warn(&self) {
        if let Some(warning) = self.options.tls.as_ref().and_then(Tls::warning) {
            self.core.log(LOG_WARNING, &warning);
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
