//! A terminal that a reader types into.

use crate::support::terminal::Running;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Longer than anything takes that a page shows.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

pub(super) struct Screen {
    // The order matters: the keyboard must be closed before the child is waited for.
    keyboard: ChildStdin,
    _child: Running,
    lines: Receiver<String>,
}

impl Screen {
    /// Runs a shell line, whose output and errors arrive in the order in which they are written.
    pub(super) fn start(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program is installed");
        let keyboard = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { keyboard, _child: Running(child), lines }
    }

    pub(super) fn type_line(&mut self, line: &str) {
        writeln!(self.keyboard, "{line}").expect("the program reads");
        self.keyboard.flush().expect("the program reads");
    }

    /// Returns the output before a line that ends with `mark`.
    pub(super) fn until(&mut self, mark: &str) -> Vec<String> {
        let (began, mut lines) = (Instant::now(), Vec::new());
        loop {
            match self.lines.recv_timeout(PATIENCE.saturating_sub(began.elapsed())) {
                Ok(line) => match line.strip_suffix(mark) {
                    Some("") => return lines,
                    // The last line of an output without a final line break.
                    Some(last) => {
                        lines.push(last.to_owned());
                        return lines;
                    }
                    None => lines.push(line),
                },
                Err(error) => panic!("{error} before {mark}; what came:\n{}", lines.join("\n")),
            }
        }
    }

    /// Returns the next line, if one comes within `wait`.
    pub(super) fn next(&mut self, wait: Duration) -> Option<String> {
        self.lines.recv_timeout(wait).ok()
    }
}
