//! `tidemark top counters`: readings, one after the other, in the form that the output takes.

use super::reading::Reading;
use super::screen::{Event, Screen, is_possible, next_due};
use super::sort::Sort;
use super::source::{Source, is_disconnection};
use super::text::{Line, Tone};
use super::{json, text};
use crate::server_args::ServerArgs;
use clap::builder::RangedU64ValueParser;
use clap::{ArgAction, Args};
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tidemark_lab::duration::{self, DurationError};
use tidemark_lab::output;

/// Arguments of `tidemark top counters`.
#[derive(Args)]
#[command(disable_help_flag = true, after_help = AFTER_HELP)]
pub(crate) struct CountersArgs {
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
    /// What the counters that move most are ordered by
    #[arg(short, long, value_enum, default_value_t)]
    sort: Sort,
    /// How many of them are shown
    #[arg(short, long, default_value_t = 10, value_parser = RangedU64ValueParser::<usize>::new().range(0..=1000))]
    keys: usize,
    /// Print each reading as a line of JSON
    #[arg(long)]
    json: bool,
    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

const AFTER_HELP: &str = "\
On a terminal, without --count, a page stays in place: m, u and c order by moves, units and churn, q or Ctrl-C leaves.
Elsewhere readings follow each other as text. NO_COLOR does without colours. A server that goes away is waited for.
Exit codes: 0 done; 1 it failed, and the last line says why; 2 the command line is wrong.
Environment: TIDEMARK_PASSWORD stands in for --password, which other users of the machine can see.";

/// A pause that a server does not notice.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// The longest.
const INTERVAL_MAX: Duration = Duration::from_hours(24);

/// Where readings go.
enum Shown {
    Page(Screen),
    Text,
    Json,
}

/// Shows readings until there were enough, or somebody has seen enough.
pub(super) fn run(args: &CountersArgs) -> anyhow::Result<ExitCode> {
    let mut source = Source::new(args.server.target(), args.timeout);
    let enough = if args.once { Some(1) } else { args.count };
    // What is wrong from the beginning is told in plain words, before the terminal is taken.
    let mut sort = args.sort;
    let mut reading = Some(source.read(sort, args.keys)?);
    let shown = if args.json {
        Shown::Json
    } else if enough.is_none() && is_possible() {
        Shown::Page(Screen::enter()?)
    } else {
        Shown::Text
    };
    let (mut before, mut lost, mut readings, mut due) = (None::<Reading>, None, 0, Instant::now());
    loop {
        if let Some(now) = &reading {
            show(&shown, &source, sort, now, before.as_ref(), lost.as_deref())?;
        }
        readings += u64::from(lost.is_none());
        if enough.is_some_and(|enough| readings >= enough) {
            return Ok(ExitCode::SUCCESS);
        }
        due = next_due(due, args.interval);
        let is_early = match wait(&shown, due) {
            None => false,
            Some(Event::Quit) => return Ok(ExitCode::SUCCESS),
            Some(Event::Sort(wanted)) => {
                sort = wanted;
                true
            }
            Some(Event::Redraw) => true,
        };
        if is_early {
            due = Instant::now();
        }
        match source.read(sort, args.keys) {
            Ok(now) => {
                if lost.take().is_some() {
                    tell(&shown, format_args!("{} is there again", source.target()));
                }
                let last = reading.replace(now);
                // Rates over the moment between two keys would say nothing.
                if !is_early {
                    before = last;
                }
            }
            Err(error) if is_disconnection(&error) => {
                if lost.is_none() {
                    tell(&shown, format_args!("{error:#}; trying again"));
                }
                lost = Some(format!("{error:#}"));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Waits for the next reading to be due, or for what comes before.
fn wait(shown: &Shown, due: Instant) -> Option<Event> {
    if let Shown::Page(screen) = shown {
        return screen.wait_until(due);
    }
    std::thread::sleep(due.saturating_duration_since(Instant::now()));
    None
}

/// Says beside the readings what a page says itself.
fn tell(shown: &Shown, what: std::fmt::Arguments<'_>) {
    if !matches!(shown, Shown::Page(_)) {
        output::tell(format_args!("tidemark top: {what}"));
    }
}

fn show(
    shown: &Shown,
    source: &Source,
    sort: Sort,
    now: &Reading,
    before: Option<&Reading>,
    lost: Option<&str>,
) -> anyhow::Result<()> {
    let rates = before.and_then(|before| now.rates_since(before));
    match shown {
        Shown::Page(screen) => {
            let status = match lost {
                Some(error) => Line::new(
                    Tone::Alert,
                    format!("{error}; trying again, what follows is what was last seen"),
                ),
                None => Line::new(
                    Tone::Title,
                    format!("{} by {}; m u c order, q leaves", source.target(), sort.word().to_lowercase()),
                ),
            };
            let mut lines = vec![status];
            lines.extend(text::lines(now, rates.as_ref()));
            Ok(screen.draw(&lines)?)
        }
        // What was shown already is not shown again.
        _ if lost.is_some() => Ok(()),
        Shown::Text => {
            let mut out = std::io::stdout().lock();
            for line in text::lines(now, rates.as_ref()) {
                writeln!(out, "{}", line.text.trim_end())?;
            }
            writeln!(out)?;
            Ok(out.flush()?)
        }
        Shown::Json => {
            let mut out = std::io::stdout().lock();
            writeln!(out, "{}", json::document(now, rates.as_ref()))?;
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
