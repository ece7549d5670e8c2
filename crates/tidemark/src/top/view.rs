//! Shows readings one after another as a page, text or JSON: the part that all subjects of
//! `tidemark top` share.

use super::line::{Line, Tone};
use super::screen::{Event, Screen, is_possible, next_due};
use super::source::{Source, is_disconnection};
use crate::server_args::ServerArgs;
use clap::builder::RangedU64ValueParser;
use clap::{ArgAction, Args};
use serde_json::Value;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tidemark_lab::client::Client;
use tidemark_lab::duration::{self, DurationError};
use tidemark_lab::output;
use tidemark_lab::target::Target;

/// Arguments that all subjects take.
#[derive(Args)]
pub(super) struct ViewArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Longest wait for a connection, and for an answer
    #[arg(short, long, default_value = "5s", value_parser = duration::parse)]
    timeout: Duration,
    /// Time between two readings, at least 100ms
    #[arg(short, long, default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Readings after which it ends [default: it does not]
    #[arg(short, long, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    count: Option<u64>,
    /// One reading: the same as --count 1
    #[arg(long, conflicts_with = "count")]
    once: bool,
    /// Print each reading as a line of JSON
    #[arg(long)]
    json: bool,
    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

impl ViewArgs {
    /// Returns the server, with the database that its URI names.
    pub(super) fn target(&self) -> Target {
        self.server.target()
    }
}

/// A subject of `tidemark top`.
pub(super) trait Subject {
    /// State of the subject at one moment.
    type Reading;

    /// Takes a reading.
    fn read(&mut self, client: &mut Client) -> anyhow::Result<Self::Reading>;

    /// Handles a key; returns false if the key has no meaning.
    fn press(&mut self, key: u8) -> bool;

    /// Returns the text beside the server's name: the order, and the keys.
    fn status(&self) -> String;

    /// Returns a reading as lines for people, with the changes since the one before.
    fn lines(&self, now: &Self::Reading, before: Option<&Self::Reading>) -> Vec<Line>;

    /// Returns a reading as JSON, with the changes since the one before.
    fn document(&self, now: &Self::Reading, before: Option<&Self::Reading>) -> Value;
}

/// Shortest interval: its load on a server is negligible.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Longest interval.
const INTERVAL_MAX: Duration = Duration::from_hours(24);

/// Destination of readings.
enum Shown {
    Page(Screen),
    Text,
    Json,
}

/// Shows readings until there were enough, or the user quits.
pub(super) fn run<S: Subject>(args: &ViewArgs, target: Target, mut subject: S) -> anyhow::Result<ExitCode> {
    let mut source = Source::new(target, args.timeout);
    let enough = if args.once { Some(1) } else { args.count };
    // Errors of the first reading are reported as plain text, before the terminal is taken over.
    let mut reading = Some(source.read(|client| subject.read(client))?);
    let shown = if args.json {
        Shown::Json
    } else if enough.is_none() && is_possible() {
        Shown::Page(Screen::enter()?)
    } else {
        Shown::Text
    };
    let (mut before, mut lost, mut readings, mut due) = (None::<S::Reading>, None, 0, Instant::now());
    loop {
        if let Some(now) = &reading {
            show(&shown, &source, &subject, now, before.as_ref(), lost.as_deref())?;
        }
        readings += u64::from(lost.is_none());
        if enough.is_some_and(|enough| readings >= enough) {
            return Ok(ExitCode::SUCCESS);
        }
        due = next_due(due, args.interval);
        let is_early = match wait(&shown, due, &mut subject) {
            Waited::Quit => return Ok(ExitCode::SUCCESS),
            Waited::Early => true,
            Waited::Due => false,
        };
        if is_early {
            due = Instant::now();
        }
        match source.read(|client| subject.read(client)) {
            Ok(now) => {
                if lost.take().is_some() {
                    report(&shown, format_args!("{} is there again", source.target()));
                }
                let last = reading.replace(now);
                // Rates over the short time between two keys would mean nothing.
                if !is_early {
                    before = last;
                }
            }
            Err(error) if is_disconnection(&error) => {
                if lost.is_none() {
                    report(&shown, format_args!("{error:#}; trying again"));
                }
                lost = Some(format!("{error:#}"));
            }
            Err(error) => return Err(error),
        }
    }
}

/// How a wait has ended.
enum Waited {
    Due,
    /// A key or a resize asks for a page now.
    Early,
    Quit,
}

/// Waits until the next reading is due, or until an earlier event. Ignores keys without a meaning.
fn wait(shown: &Shown, due: Instant, subject: &mut impl Subject) -> Waited {
    let Shown::Page(screen) = shown else {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        return Waited::Due;
    };
    loop {
        match screen.wait_until(due) {
            None => return Waited::Due,
            Some(Event::Quit) => return Waited::Quit,
            Some(Event::Redraw) => return Waited::Early,
            Some(Event::Key(key)) if subject.press(key) => return Waited::Early,
            Some(Event::Key(_)) => {}
        }
    }
}

/// Reports to standard error, unless a page shows the message itself.
fn report(shown: &Shown, what: std::fmt::Arguments<'_>) {
    if !matches!(shown, Shown::Page(_)) {
        output::report(format_args!("tidemark top: {what}"));
    }
}

fn show<S: Subject>(
    shown: &Shown,
    source: &Source,
    subject: &S,
    now: &S::Reading,
    before: Option<&S::Reading>,
    lost: Option<&str>,
) -> anyhow::Result<()> {
    match shown {
        Shown::Page(screen) => {
            let status = match lost {
                Some(error) => Line::new(
                    Tone::Alert,
                    format!("{error}; trying again, what follows is what was last seen"),
                ),
                None => Line::new(Tone::Title, format!("{} {}", source.target(), subject.status())),
            };
            let mut lines = vec![status];
            lines.extend(subject.lines(now, before));
            Ok(screen.draw(&lines)?)
        }
        // A reading that was shown already is not shown again.
        _ if lost.is_some() => Ok(()),
        Shown::Text => {
            let mut out = std::io::stdout().lock();
            for line in subject.lines(now, before) {
                writeln!(out, "{}", line.text.trim_end())?;
            }
            writeln!(out)?;
            Ok(out.flush()?)
        }
        Shown::Json => {
            let mut out = std::io::stdout().lock();
            writeln!(out, "{}", subject.document(now, before))?;
            Ok(out.flush()?)
        }
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration::parse(text).map_err(|error: DurationError| error.to_string())?;
    match interval {
        _ if interval < INTERVAL_MIN => Err(format!("must be at least {INTERVAL_MIN:?}")),
        _ if interval > INTERVAL_MAX => Err("must be at most a day".to_owned()),
        _ => Ok(interval),
    }
}

#[cfg(test)]
mod tests {
    use super::{INTERVAL_MAX, interval};
    use std::time::Duration;

    #[test]
    fn an_interval_has_a_least_length() {
        assert_eq!(interval("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(interval("99ms").unwrap_err(), "must be at least 100ms");
        assert_eq!(interval("24h"), Ok(INTERVAL_MAX));
        assert_eq!(interval("25h").unwrap_err(), "must be at most a day");
        assert!(interval("soon").unwrap_err().starts_with("invalid duration"));
    }
}
