//! `tidemark pool audit`: every draw of a pool with its odds, and every other event of the pool.

use super::format::{AuditFormat, Writer};
use super::history::History;
use super::scribe::Scribe;
use super::{PoolName, progress};
use crate::counted::counted;
use crate::private_file::private_file;
use anyhow::Context;
use clap::Args;
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tidemark_engine::value::Pool;
use tidemark_engine::value::pool::Sight;
use tidemark_engine::watch::{PoolChange, PoolObserver, PoolTrail};
use tidemark_lab::output;
use tidemark_lab::wall_time::parse_rfc3339_us;
use tidemark_log::Lsn;
use tidemark_pool::{Chain, Event, Events, Frame};

/// Arguments of `tidemark pool audit`.
#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    /// The pool's key
    key: OsString,
    /// Database
    #[arg(short = 'n', long, default_value_t = 0, value_parser = super::database())]
    db: u8,
    /// How it is written
    #[arg(long, value_enum, default_value_t)]
    format: AuditFormat,
    /// First draw, or a time such as 2026-11-21 or 2026-11-21T03:29:18Z
    #[arg(long, value_name = "DRAW|TIME")]
    from: Option<Bound>,
    /// Last draw, or a time; what was logged together with the first or the last is there as well
    #[arg(long, value_name = "DRAW|TIME")]
    to: Option<Bound>,
    /// File to write [default: standard output]
    #[arg(long)]
    output: Option<PathBuf>,
}

/// First or last event of an audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Draw(u64),
    /// Microseconds since 1970.
    Time(u64),
}

impl std::str::FromStr for Bound {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let draw = text.parse().ok().map(Self::Draw);
        let time = || parse_rfc3339_us(text).map(Self::Time);
        draw.or_else(time).ok_or_else(|| {
            "it is neither the number of a draw nor a time such as 2026-11-21 or 2026-11-21T03:29:18Z"
                .to_owned()
        })
    }
}

/// Writes the audit.
pub(super) fn run(args: &AuditArgs, dir: &Path) -> anyhow::Result<ExitCode> {
    let name = PoolName { key: args.key.clone().into_encoded_bytes(), db: args.db };
    let bar = progress(dir);
    let mut history = History::open(dir, &name.key, &bar)?;
    let draws = if let Some(path) = &args.output {
        let file = private_file(path)
            .with_context(|| format!("cannot make {}, which must be a new file", path.display()))?;
        let draws = written(args, &name, &mut history, BufWriter::new(&file), &bar)?;
        file.sync_all().with_context(|| format!("cannot finish {}", path.display()))?;
        draws
    } else {
        written(args, &name, &mut history, BufWriter::new(io::stdout().lock()), &bar)?
    };
    bar.finish_and_clear();
    if let Some(unread) = history.unread() {
        output::report(format_args!("{unread}"));
    }
    let (draws, last) = (counted(draws, "draw"), history.last());
    output::report(format_args!("{draws} of pool {name} written, up to record {last}"));
    Ok(ExitCode::SUCCESS)
}

fn written(
    args: &AuditArgs,
    name: &PoolName,
    history: &mut History,
    out: impl Write,
    bar: &indicatif::ProgressBar,
) -> anyhow::Result<u64> {
    let mut auditor = Auditor {
        name,
        range: Range { from: args.from, to: args.to },
        scribe: Scribe::new(String::from_utf8_lossy(&name.key).into_owned(), name.db),
        lines: Writer::new(args.format, out)?,
        there: None,
        written: None,
        is_writing: false,
        is_known: false,
    };
    history.follow(&mut auditor, None, bar)?;
    if !auditor.is_known {
        anyhow::bail!("the log has no pool {name}, up to record {}", history.last());
    }
    let draws = auditor.lines.draws;
    auditor.lines.finish()?;
    Ok(draws)
}

/// Range of frames to export.
struct Range {
    from: Option<Bound>,
    to: Option<Bound>,
}

impl Range {
    /// Returns whether the range includes a frame whose draws end before `end`.
    fn has(&self, frame: &Frame<'_>, end: u64) -> bool {
        let last = end.max(frame.first_draw + 1) - 1;
        let is_behind = match self.from {
            None => true,
            Some(Bound::Draw(draw)) => last >= draw,
            Some(Bound::Time(time_us)) => frame.time_us >= time_us,
        };
        is_behind
            && match self.to {
                None => true,
                Some(Bound::Draw(draw)) => frame.first_draw <= draw,
                Some(Bound::Time(time_us)) => frame.time_us <= time_us,
            }
    }

    /// Returns whether a pool's initial state is exported even without a frame.
    fn has_beginning(&self) -> bool {
        self.from.is_none()
    }
}

/// Exports the events of a pool as the trail applies them.
struct Auditor<'a, W> {
    name: &'a PoolName,
    range: Range,
    scribe: Scribe,
    lines: Writer<W>,
    /// Chain of the pool now at the key.
    there: Option<Chain>,
    /// Chain up to which events were exported: a frame that follows it needs no state before it.
    written: Option<Chain>,
    /// Whether the frame being checked is exported.
    is_writing: bool,
    /// Whether the key ever had a pool.
    is_known: bool,
}

impl<W: Write> Auditor<'_, W> {
    fn begin(&mut self, lsn: Lsn, pool: &Pool, made: bool) -> io::Result<()> {
        self.written = Some(pool.chain());
        self.scribe.pool(lsn.0, pool.inner(), pool.chain(), made, &mut self.lines)
    }

    /// Notes a pool that was not at the key before.
    fn meet(&mut self, lsn: Lsn, pool: &Pool, made: bool) -> io::Result<()> {
        self.is_known = true;
        self.there = Some(pool.chain());
        if self.range.has_beginning() { self.begin(lsn, pool, made) } else { Ok(()) }
    }
}

impl<W: Write> PoolObserver for Auditor<'_, W> {
    fn created(&mut self, place: &PoolChange<'_>, pool: &Pool) -> io::Result<()> {
        if self.name.is(place) { self.meet(place.lsn, pool, true) } else { Ok(()) }
    }

    fn frame_begins(&mut self, place: &PoolChange<'_>, pool: &Pool, bytes: &[u8]) -> io::Result<()> {
        // The check of the frame reports invalid bytes.
        let (true, Ok((frame, chain))) = (self.name.is(place), Frame::read_stated(bytes)) else {
            self.is_writing = false;
            return Ok(());
        };
        self.is_writing = self.range.has(&frame, frame.first_draw + draws(frame.events));
        if !self.is_writing {
            return Ok(());
        }
        if self.written != Some(pool.chain()) {
            self.begin(place.lsn, pool, false)?;
        }
        self.scribe.frame(place.lsn.0, &frame, chain, &mut self.lines)
    }

    fn observe(&mut self, _: &PoolChange<'_>, sight: Sight<'_>) -> io::Result<()> {
        if self.is_writing { self.scribe.see(sight, &mut self.lines) } else { Ok(()) }
    }

    fn frame_ends(&mut self, place: &PoolChange<'_>, pool: &Pool) -> io::Result<()> {
        if self.name.is(place) {
            self.there = Some(pool.chain());
        }
        if std::mem::take(&mut self.is_writing) {
            self.written = Some(pool.chain());
        }
        Ok(())
    }

    fn keys_changed(&mut self, lsn: Lsn, time_us: u64, trail: &PoolTrail) -> io::Result<()> {
        let name = self.name;
        trail.look(name.db, &name.key, |pool| match pool {
            Some(pool) if self.there != Some(pool.chain()) => self.meet(lsn, pool, false),
            None if self.there.take().is_some() && self.written.take().is_some() => {
                self.scribe.gone(lsn.0, time_us, &mut self.lines)
            }
            _ => Ok(()),
        })
    }
}

/// Returns the number of draws in these events.
fn draws(events: &[u8]) -> u64 {
    let count = |event: Event<'_>| match event {
        Event::Drew(_) => 1,
        Event::DrewDifferent { items } | Event::Reserved { items, .. } => items.len() as u64,
        Event::Asked(asked) => asked.items.len() as u64,
        _ => 0,
    };
    Events::new(events).map_while(Result::ok).map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::{Bound, Range};
    use tidemark_pool::Frame;

    #[test]
    fn a_bound_is_a_draw_or_a_time() {
        assert_eq!("17".parse(), Ok(Bound::Draw(17)));
        assert_eq!("1970-01-01T00:00:02Z".parse(), Ok(Bound::Time(2_000_000)));
        assert!("soon".parse::<Bound>().is_err());
    }

    #[test]
    fn a_frame_is_printed_if_one_of_its_draws_is_selected() {
        let has = |from, to, first_draw, end| {
            Range { from, to }.has(&Frame { time_us: 5, first_draw, events: &[] }, end)
        };
        let draw = |number| Some(Bound::Draw(number));
        assert!(has(None, None, 3, 3) && has(draw(4), draw(4), 3, 5) && has(draw(3), draw(3), 3, 5));
        assert!(!has(draw(5), None, 3, 5) && !has(None, draw(2), 3, 5));
        assert!(has(draw(3), draw(3), 3, 3), "what has no draws stands before the next one");
        assert!(has(Some(Bound::Time(5)), Some(Bound::Time(5)), 0, 1));
        assert!(!has(Some(Bound::Time(6)), None, 0, 1) && !has(None, Some(Bound::Time(4)), 0, 1));
    }
}
