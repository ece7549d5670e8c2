//! A terminal that shows one page, redrawn in place, and restores its state at the end.
//!
//! Each page is one write that begins at the upper left corner and clears only what it does not
//! overwrite, so nothing flickers. While a page is shown the terminal neither echoes keys nor waits
//! for the end of a line. Every end of the program restores the terminal: a regular end and a panic
//! ([`Screen`] is dropped), and signals, which a thread of their own waits for.

use super::line::{Line, Tone};
use crate::name::clipped;
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::io::{self, IsTerminal, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Shows the page in place of the terminal's content, without a cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
/// Restores the previous content, with a cursor.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// Most pending events; further events are dropped, as if a key had not been pressed.
const EVENTS: usize = 16;

/// Rows and columns of a terminal that does not report its size.
const USUAL_SIZE: (usize, usize) = (24, 80);

/// An event while a page is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// The terminal has another size, or shows the page again.
    Redraw,
    /// A key was pressed; letters in lower case.
    Key(u8),
    Quit,
}

/// State of the terminal before the first page.
struct Original {
    /// Settings of the terminal's input; `None` if standard input is no terminal.
    input: Option<Termios>,
}

/// The terminal while it shows pages.
pub(super) struct Screen {
    original: Arc<Original>,
    events: Receiver<Event>,
    with_colours: bool,
}

/// Returns whether standard output is a terminal that can show pages.
pub(super) fn is_possible() -> bool {
    io::stdout().is_terminal()
        && std::env::var_os("TERM").is_some_and(|term| term != "dumb" && !term.is_empty())
}

impl Original {
    fn find() -> Self {
        Self { input: tcgetattr(io::stdin()).ok() }
    }

    fn enter(&self) -> io::Result<()> {
        if let Some(mut settings) = self.input.clone() {
            settings.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            tcsetattr(io::stdin(), OptionalActions::Now, &settings)?;
        }
        write(ENTER)
    }

    fn leave(&self) {
        // If the terminal is gone, there is nowhere to report it.
        let _ = write(LEAVE);
        if let Some(settings) = &self.input {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, settings);
        }
    }
}

impl Screen {
    /// Takes over the terminal.
    pub(super) fn enter() -> io::Result<Self> {
        let (original, (sender, events)) = (Arc::new(Original::find()), sync_channel(EVENTS));
        let signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH])?;
        original.enter()?;
        let with_colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let screen = Self { original: Arc::clone(&original), events, with_colours };
        let of_keys = sender.clone();
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || handle_signals(signals, &original, &sender))?;
        if screen.original.input.is_some() {
            std::thread::Builder::new().name("keys".to_owned()).spawn(move || read_keys(&of_keys))?;
        }
        Ok(screen)
    }

    /// Shows as much of a page as fits.
    pub(super) fn draw(&self, lines: &[Line]) -> io::Result<()> {
        let (rows, columns) = size();
        write(page(lines, rows, columns, self.with_colours).as_bytes())
    }

    /// Returns the next event, or `None` at the deadline.
    pub(super) fn wait_until(&self, deadline: Instant) -> Option<Event> {
        match self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // Both threads have ended; only the deadline is left to wait for.
                std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
                None
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.original.leave();
    }
}

/// Returns the bytes that show a page on a terminal of this size.
fn page(lines: &[Line], rows: usize, columns: usize, with_colours: bool) -> String {
    // Terminals that support synchronized output show everything between these two marks in one
    // update.
    let mut page = String::from("\x1b[?2026h\x1b[H");
    for (index, line) in lines.iter().take(rows).enumerate() {
        if index > 0 {
            page.push_str("\r\n");
        }
        let text = clipped(&line.text, columns);
        let colour = match line.tone {
            Tone::Plain => None,
            Tone::Title => Some("\x1b[1m"),
            Tone::Alert => Some("\x1b[1;31m"),
        };
        match colour.filter(|_| with_colours) {
            Some(colour) => page.extend([colour, &text, "\x1b[0m"]),
            None => page.push_str(&text),
        }
        page.push_str("\x1b[K");
    }
    page.push_str("\x1b[J\x1b[?2026l");
    page
}

/// Writes without the buffer of standard output, which would split a page into two writes.
fn write(mut bytes: &[u8]) -> io::Result<()> {
    let out = io::stdout().lock();
    while !bytes.is_empty() {
        match rustix::io::write(&out, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn size() -> (usize, usize) {
    let size = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0);
    size.map_or(USUAL_SIZE, |size| (usize::from(size.ws_row), usize::from(size.ws_col)))
}

fn handle_signals(mut signals: Signals, original: &Original, events: &SyncSender<Event>) {
    for signal in signals.forever() {
        // A branch that leaves holds the lock of standard output, so no page follows.
        match signal {
            SIGWINCH => {
                // If there is no room, a redraw is pending already or comes with the next page.
                let _ = events.try_send(Event::Redraw);
            }
            SIGCONT => {
                // The shell has set its own terminal settings before the process continues.
                let _ = original.enter();
                let _ = events.try_send(Event::Redraw);
            }
            SIGTSTP => {
                let _out = io::stdout().lock();
                original.leave();
                let _ = emulate_default_handler(SIGTSTP);
            }
            // The regular way to leave: nothing has failed.
            SIGINT => {
                let _out = io::stdout().lock();
                original.leave();
                std::process::exit(0);
            }
            other => {
                let _out = io::stdout().lock();
                original.leave();
                let _ = emulate_default_handler(other);
            }
        }
    }
}

fn read_keys(events: &SyncSender<Event>) {
    let mut input = io::stdin().lock();
    let mut key = [0];
    while input.read(&mut key).is_ok_and(|length| length == 1) {
        let event = match key[0].to_ascii_lowercase() {
            b'q' => Event::Quit,
            key => Event::Key(key),
        };
        if events.send(event).is_err() {
            break;
        }
    }
}

/// Returns when the next page is due. The pace stays the same after a late page.
pub(super) fn next_due(due: Instant, interval: Duration) -> Instant {
    (due + interval).max(Instant::now())
}

#[cfg(test)]
mod tests {
    use super::{Line, Tone, page};

    fn lines() -> [Line; 3] {
        [(Tone::Title, "first"), (Tone::Plain, "second"), (Tone::Alert, "third")]
            .map(|(tone, text)| Line::new(tone, text.to_owned()))
    }

    #[test]
    fn a_page_is_written_over_the_one_before() {
        let expected = "\x1b[?2026h\x1b[H\x1b[1mfirst\x1b[0m\x1b[K\r\nsecond\x1b[K\r\n\x1b[1;31mthird\x1b[0m\x1b[K\x1b[J\x1b[?2026l";
        assert_eq!(page(&lines(), 24, 80, true), expected);
    }

    #[test]
    fn without_colours_nothing_stands_out() {
        assert_eq!(
            page(&lines(), 24, 80, false),
            "\x1b[?2026h\x1b[Hfirst\x1b[K\r\nsecond\x1b[K\r\nthird\x1b[K\x1b[J\x1b[?2026l"
        );
    }

    #[test]
    fn a_page_never_scrolls() {
        assert_eq!(page(&lines(), 2, 4, false), "\x1b[?2026h\x1b[Hfir…\x1b[K\r\nsec…\x1b[K\x1b[J\x1b[?2026l");
    }
}
