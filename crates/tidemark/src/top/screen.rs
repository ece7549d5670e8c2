//! A terminal that shows one page, drawn anew in place, and left as it was found.
//!
//! Each page is one write, which begins at the upper left corner and clears only what it does not write over: nothing flickers. While a
//! page is shown the terminal neither echoes keys nor waits for the end of a line. Whatever ends the program gives the terminal back: its
//! regular end and a panic ([`Screen`] is dropped), and signals, which a thread of their own waits for.

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

/// The page in place of what the terminal shows, without a cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
/// What it showed before, with a cursor.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// Events that have not been looked at; what comes beyond them is lost, as if a key had not been pressed.
const EVENTS: usize = 16;

/// Rows and columns of a terminal that does not say how many it has.
const USUAL_SIZE: (usize, usize) = (24, 80);

/// What happens while a page is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// The terminal has another size, or shows the page again.
    Redraw,
    /// A key was pressed; a letter, in lower case.
    Key(u8),
    Quit,
}

/// How the terminal was found.
struct Original {
    /// Settings of its input; `None` if our input comes from elsewhere.
    input: Option<Termios>,
}

/// The terminal while it shows our pages.
pub(super) struct Screen {
    original: Arc<Original>,
    events: Receiver<Event>,
    with_colours: bool,
}

/// Whether standard output is a terminal that can show pages.
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
        // There is nobody to tell if the terminal is gone.
        let _ = write(LEAVE);
        if let Some(settings) = &self.input {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, settings);
        }
    }
}

impl Screen {
    /// Takes the terminal.
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

    /// Shows a page: as much of it as there is room for.
    pub(super) fn draw(&self, lines: &[Line]) -> io::Result<()> {
        let (rows, columns) = size();
        write(page(lines, rows, columns, self.with_colours).as_bytes())
    }

    /// The next event, or `None` when the time has come.
    pub(super) fn wait_until(&self, deadline: Instant) -> Option<Event> {
        match self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // Both threads have ended; nothing but the time is left.
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

/// What a terminal of this size has to be sent.
fn page(lines: &[Line], rows: usize, columns: usize, with_colours: bool) -> String {
    // Terminals that know it show everything between these two at once.
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

/// Past the buffer of standard output, which would make two writes of a page.
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
        // Whoever leaves keeps standard output, so that no page follows.
        match signal {
            SIGWINCH => {
                // If there is no room, a redraw waits already or comes with the next page.
                let _ = events.try_send(Event::Redraw);
            }
            SIGCONT => {
                // Before it goes on the shell has put its own settings back.
                let _ = original.enter();
                let _ = events.try_send(Event::Redraw);
            }
            SIGTSTP => {
                let _out = io::stdout().lock();
                original.leave();
                let _ = emulate_default_handler(SIGTSTP);
            }
            // The way to leave: nothing has failed.
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

/// What is left until the next page is due, which keeps its pace also if one came late.
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
