//! `tidemark top series`: which time series have the most points, get the most, and take the most
//! memory.

mod json;
mod reading;
mod sort;
mod text;

use super::line::Line;
use super::listing::Listing;
use super::view::{self, Subject, ViewArgs};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use reading::{Reading, Series};
use serde_json::Value as Json;
use sort::Sort;
use std::collections::HashMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tidemark_lab::client::Client;

/// Arguments of `tidemark top series`.
#[derive(Args)]
#[command(disable_help_flag = true, after_help = AFTER_HELP)]
pub(crate) struct SeriesArgs {
    #[command(flatten)]
    view: ViewArgs,
    /// Database
    #[arg(short = 'n', long)]
    database: Option<u32>,
    /// Only series whose keys match this pattern
    #[arg(long = "match", value_name = "PATTERN")]
    pattern: Option<String>,
    /// What the series are ordered by
    #[arg(short, long, value_enum, default_value_t)]
    sort: Sort,
    /// How many of them are shown
    #[arg(short, long, default_value_t = 20, value_parser = RangedU64ValueParser::<usize>::new().range(0..=1000))]
    keys: usize,
}

const AFTER_HELP: &str = "\
On a terminal, without --count, a page stays in place: a, p, m and n order by points a second, points, memory and name; q or Ctrl-C leaves.
Elsewhere readings follow each other as text. NO_COLOR turns colours off. If the server goes away, the program waits for it.
Points a second are by how much a series has grown between two readings: what a retention drops is subtracted.
Exit codes: 0 done; 1 it failed, and the last line says why; 2 the command line is wrong.
Environment: TIDEMARK_PASSWORD stands in for --password, which other users of the machine can see.";

/// Shortest time over which rates are computed.
const WINDOW_MIN: Duration = Duration::from_millis(50);

/// Shows the series.
pub(super) fn run(args: &SeriesArgs) -> anyhow::Result<ExitCode> {
    let mut target = args.view.target();
    target.database = args.database.unwrap_or(target.database);
    let all = AllSeries {
        sort: args.sort,
        keys: args.keys,
        listing: Listing::new("SCAN", &["TYPE", "TSDB-TYPE"], args.pattern.clone()),
        before: HashMap::new(),
    };
    view::run(&args.view, target, all)
}

/// Points of a series, when they were counted, and points a second before that.
type Counted = (u64, Instant, Option<f64>);

/// State that is kept from one reading to the next.
struct AllSeries {
    sort: Sort,
    keys: usize,
    listing: Listing,
    before: HashMap<Vec<u8>, Counted>,
}

impl Subject for AllSeries {
    type Reading = Reading;

    fn read(&mut self, client: &mut Client) -> anyhow::Result<Reading> {
        let (mut series, mut counted) = (Vec::new(), HashMap::new());
        for key in self.listing.read(client)? {
            let info = client.call(&[b"TS.INFO", &*key])?;
            // Leaves out a series that has gone since, or that this user may not read.
            let Some(mut one) = Series::of(&key, &info) else { continue };
            let now = (one.points, Instant::now(), None);
            let state = self.before.get(&key).map_or(now, |before| advanced(*before, now));
            one.rate = state.2;
            counted.insert(key, state);
            series.push(one);
        }
        self.before = counted;
        let sums = (series.iter().map(|one| one.points).sum(), series.iter().map(|one| one.bytes).sum());
        let count = series.len();
        let rates: Option<Vec<f64>> = series.iter().map(|one| one.rate).collect();
        self.sort.order(&mut series);
        series.truncate(self.keys);
        let (points, bytes) = sums;
        let rate = rates.map(|rates| rates.iter().sum());
        Ok(Reading { count, is_all: self.listing.is_complete(), points, rate, bytes, series })
    }

    fn press(&mut self, key: u8) -> bool {
        self.sort = match key {
            b'a' => Sort::Rate,
            b'p' => Sort::Points,
            b'm' => Sort::Memory,
            b'n' => Sort::Name,
            _ => return false,
        };
        true
    }

    fn status(&self) -> String {
        format!("by {}; a p m n order, q leaves", self.sort.word())
    }

    fn lines(&self, now: &Reading, _: Option<&Reading>) -> Vec<Line> {
        text::lines(now)
    }

    fn document(&self, now: &Reading, _: Option<&Reading>) -> Json {
        json::document(now)
    }
}

/// Returns the state after a count; one that comes too early changes nothing.
fn advanced(before: Counted, now: Counted) -> Counted {
    let time = now.1.saturating_duration_since(before.1);
    if time < WINDOW_MIN {
        return before;
    }
    let grown = now.0.saturating_sub(before.0);
    (now.0, now.1, Some(grown as f64 / time.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_over_a_time_that_is_long_enough() {
        let start = Instant::now();
        let after = |millis: u64, points: u64| (points, start + Duration::from_millis(millis), None);
        let first = after(0, 100);
        assert_eq!(advanced(first, after(49, 200)), first);
        assert_eq!(advanced(first, after(500, 200)).2, Some(200.0));
        assert_eq!(advanced(first, after(500, 40)).2, Some(0.0), "a retention has dropped points");
    }
}
