//! SIGHUP: the files of the options are read again.

use std::sync::Arc;

use tokio::runtime::Runtime;

use crate::abi::{LOG_ERROR, LOG_INFO};
use crate::core::Core;
use crate::options::Options;

/// Handles the signal from now on. Elsewhere than on Unix there is none.
///
/// # Errors
///
/// The handler cannot be set.
#[cfg(unix)]
pub fn watch(runtime: &Runtime, core: Core, options: Arc<Options>) -> Result<(), String> {
    use tokio::signal::unix::{SignalKind, signal};

    let _inside = runtime.enter();
    let mut hangup =
        signal(SignalKind::hangup()).map_err(|error| format!("no handler of SIGHUP: {error}"))?;
    runtime.spawn(async move {
        while hangup.recv().await.is_some() {
            let options = Arc::clone(&options);
            let _ = tokio::task::spawn_blocking(move || reload(core, &options)).await;
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
pub fn watch(_runtime: &Runtime, _core: Core, _options: Arc<Options>) -> Result<(), String> {
    Ok(())
}

/// Reads the files again.
pub fn reload(core: Core, options: &Options) {
    match options.keys.reload() {
        Ok(count) => core.log(LOG_INFO, &format!("{count} API keys are accepted")),
        Err(reason) => core.log(LOG_ERROR, &format!("the API keys stay as they were: {reason}")),
    }
}
