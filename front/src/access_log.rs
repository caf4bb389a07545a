//! The file of `--front-log`: written by a thread of its own, so that a slow disk holds up no request.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::abi::LOG_ERROR;
use crate::core::Core;

/// Lines that wait for the thread; further ones are lost.
const MOST_LINES: usize = 4096;

enum Message {
    Line(String),
    Reopen,
}

/// The log. Dropping it writes all lines that wait.
#[derive(Debug)]
pub struct AccessLog {
    /// `None` only while it is dropped.
    sender: Option<SyncSender<Message>>,
    thread: Option<JoinHandle<()>>,
    lost: Arc<AtomicU64>,
}

impl AccessLog {
    /// Opens the file, and appends to it.
    ///
    /// # Errors
    ///
    /// It cannot be opened, or there is no thread for it.
    pub fn open(path: PathBuf, core: Core) -> Result<AccessLog, String> {
        let file = open(&path)?;
        let (sender, receiver) = sync_channel(MOST_LINES);
        let lost = Arc::new(AtomicU64::new(0));
        let mut writer = Writer { path, file, core, lost: Arc::clone(&lost), is_failing: false };
        let thread = std::thread::Builder::new().name("espalier-log".to_string());
        let thread = thread.spawn(move || writer.run(&receiver)).map_err(|error| error.to_string())?;
        Ok(AccessLog { sender: Some(sender), thread: Some(thread), lost })
    }

    /// Adds a line, without waiting.
    pub fn write(&self, line: String) {
        let sent = self.sender.as_ref().map(|sender| sender.try_send(Message::Line(line)));
        if !matches!(sent, Some(Ok(()))) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Opens the file again, which was renamed. May wait.
    pub fn reopen(&self) {
        if let Some(sender) = &self.sender {
            let _ = sender.send(Message::Reopen);
        }
    }

    /// Number of lines that were not written.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn open(path: &Path) -> Result<File, String> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map_err(|error| format!("{}: {error}", path.display()))
}

struct Writer {
    path: PathBuf,
    file: File,
    core: Core,
    lost: Arc<AtomicU64>,
    is_failing: bool,
}

impl Writer {
    fn run(&mut self, receiver: &Receiver<Message>) {
        while let Ok(first) = receiver.recv() {
            // All lines that wait, in one write.
            let mut batch = Vec::new();
            for message in std::iter::once(first).chain(receiver.try_iter().take(MOST_LINES)) {
                match message {
                    Message::Line(line) => batch.push(line),
                    Message::Reopen => {
                        self.write(&std::mem::take(&mut batch));
                        self.reopen();
                    }
                }
            }
            self.write(&batch);
        }
    }

    /// Logs the first of several errors in a row.
    fn write(&mut self, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        // The write that failed may have left a part of a line.
        let separator = if self.is_failing { "\n" } else { "" };
        let written = self.file.write_all((separator.to_string() + &lines.concat()).as_bytes());
        if let Err(error) = &written {
            self.lost.fetch_add(lines.len() as u64, Ordering::Relaxed);
            if !self.is_failing {
                self.core.log(LOG_ERROR, &format!("cannot write {}: {error}", self.path.display()));
            }
        }
        self.is_failing = written.is_err();
    }

    fn reopen(&mut self) {
        match open(&self.path) {
            Ok(file) => self.file = file,
            Err(reason) => self.core.log(LOG_ERROR, &format!("cannot open the access log again: {reason}")),
        }
    }
}
