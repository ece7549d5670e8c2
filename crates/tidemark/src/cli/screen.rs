//! Pushes at the prompt: printed as they arrive, above the line that is being typed.
//!
//! ```text
//! connection ─► listener, while a line is read ─► screen ─► the editor, which draws its line again
//! ```

use super::session::{self, Session};
use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustyline::ExternalPrinter;
use std::io::{self, PipeReader, pipe};
use std::os::fd::AsFd;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

/// How often a text is offered again to a screen that is not ready.
const OFFER_INTERVAL: Duration = Duration::from_millis(2);

/// Prints texts above the line that an editor shows.
///
/// Runs on its own thread because an editor accepts texts only while it reads a line, and blocks
/// its printer until then. At most one text waits like that, and is shown above the next line.
pub(super) struct Screen {
    texts: SyncSender<String>,
}

impl Screen {
    /// Starts the printing thread, which ends with the process.
    pub(super) fn start(mut printer: impl ExternalPrinter + Send + 'static) -> io::Result<Self> {
        let (texts, taken) = sync_channel::<String>(0);
        thread::Builder::new().name("tidemark-screen".to_owned()).spawn(move || {
            // An editor that is gone shows nothing more.
            while taken.recv().is_ok_and(|text| printer.print(text).is_ok()) {}
        })?;
        Ok(Screen { texts })
    }

    /// Prints a text; directly if the screen does not take it before the line has been read.
    fn show(&self, text: &[u8], end: &LineEnd) -> anyhow::Result<()> {
        let mut text = String::from_utf8_lossy(text).into_owned();
        loop {
            text = match self.texts.try_send(text) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(text)) if !end.is_reached()? => text,
                Err(TrySendError::Full(text) | TrySendError::Disconnected(text)) => {
                    return session::show(text.as_bytes());
                }
            };
            thread::sleep(OFFER_INTERVAL);
        }
    }
}

/// Reads a line, and prints meanwhile what the server pushes.
pub(super) fn listen_while<T>(
    session: &mut Session,
    screen: Option<&Screen>,
    read_line: impl FnOnce() -> T,
) -> anyhow::Result<T> {
    let (end, reading) = pipe()?;
    let end = LineEnd(end);
    thread::scope(|scope| {
        let listener = scope.spawn(move || listen(session, screen, &end));
        let line = read_line();
        drop(reading);
        listener.join().expect("the listener does not panic")?;
        Ok(line)
    })
}

/// Prints pushes until the line has been read or the connection ends.
fn listen(session: &mut Session, screen: Option<&Screen>, end: &LineEnd) -> anyhow::Result<()> {
    loop {
        while let Some(text) = session.next_push() {
            match screen {
                Some(screen) => screen.show(&text, end)?,
                None => session::show(&text)?,
            }
            if end.is_reached()? {
                return Ok(());
            }
        }
        let Some(connection) = session.connection() else { return Ok(()) };
        if end.wait_beside(connection)? {
            return Ok(());
        }
    }
}

/// Signal that the line has been read: a pipe whose other end is then closed.
struct LineEnd(PipeReader);

impl LineEnd {
    fn is_reached(&self) -> anyhow::Result<bool> {
        poll_first([PollFd::new(&self.0, PollFlags::IN)], Some(&Timespec::default()))
    }

    /// Waits until the line has been read or `source` is readable; returns whether the line has
    /// been read.
    fn wait_beside(&self, source: &impl AsFd) -> anyhow::Result<bool> {
        poll_first([PollFd::new(&self.0, PollFlags::IN), PollFd::new(source, PollFlags::IN)], None)
    }
}

/// Waits for one of the sources, and returns whether the first is ready.
fn poll_first<const N: usize>(mut sources: [PollFd<'_>; N], wait: Option<&Timespec>) -> anyhow::Result<bool> {
    match poll(&mut sources, wait) {
        // After a signal the caller polls again.
        Ok(_) | Err(Errno::INTR) => Ok(!sources[0].revents().is_empty()),
        Err(error) => Err(error).context("cannot wait for what the server sends"),
    }
}
