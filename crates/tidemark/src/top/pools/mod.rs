//! `tidemark top pools`: how prize pools are drawn from, what is left in them, and whether the
//! draws fit the odds.

mod drift;
mod json;
mod reading;
mod sort;
#[cfg(test)]
mod test_pool;
mod text;
mod verdict;

use super::line::Line;
use super::listing::Listing;
use super::view::{self, Subject, ViewArgs};
use crate::asking::ask;
use anyhow::{Context, bail};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use drift::Drift;
use reading::{Pool, Reading, Summary};
use serde_json::Value as Json;
use sort::Sort;
use std::collections::HashMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tidemark_lab::client::Client;
use tidemark_server::resp::Value;

/// Arguments of `tidemark top pools`.
#[derive(Args)]
#[command(disable_help_flag = true, after_help = AFTER_HELP)]
pub(crate) struct PoolsArgs {
    #[command(flatten)]
    view: ViewArgs,
    /// Database
    #[arg(short = 'n', long)]
    database: Option<u32>,
    /// Only pools whose keys match this pattern
    #[arg(long = "match", value_name = "PATTERN")]
    pattern: Option<String>,
    /// What the pools are ordered by
    #[arg(short, long, value_enum, default_value_t)]
    sort: Sort,
    /// How many of them are shown
    #[arg(short, long, default_value_t = 5, value_parser = RangedU64ValueParser::<usize>::new().range(0..=100))]
    keys: usize,
    /// How many items are shown of each
    #[arg(long, default_value_t = 5, value_parser = RangedU64ValueParser::<usize>::new().range(0..=1000))]
    items: usize,
}

const AFTER_HELP: &str = "\
On a terminal, without --count, a page stays in place: d, t, r and n order by draws a second, draws in all, open reservations and name;
q or Ctrl-C leaves. Elsewhere readings follow each other as text. NO_COLOR turns colours off. If the server goes away, the program waits for it.
Draws are compared with the odds as long as this runs: those between two readings with the odds that both have shown.
Exit codes: 0 done; 1 it failed, and the last line says why; 2 the command line is wrong.
Environment: TIDEMARK_PASSWORD stands in for --password, which other users of the machine can see.";

/// Most items of a pool that are read; draws of larger pools are not compared with the odds.
const ITEMS_MAX: usize = 1000;
/// Shortest time over which rates are computed.
const WINDOW_MIN: Duration = Duration::from_millis(50);

/// Shows the pools.
pub(super) fn run(args: &PoolsArgs) -> anyhow::Result<ExitCode> {
    let mut target = args.view.target();
    target.database = args.database.unwrap_or(target.database);
    let pools = Pools {
        sort: args.sort,
        keys: args.keys,
        items: args.items,
        listing: Listing::new("POOL.LIST", &[], args.pattern.clone()),
        summaries: HashMap::new(),
        seen: HashMap::new(),
    };
    view::run(&args.view, target, pools)
}

/// State that is kept from one reading to the next.
struct Pools {
    sort: Sort,
    keys: usize,
    items: usize,
    listing: Listing,
    /// For each pool: its draws, when they were counted, and draws a second.
    summaries: HashMap<Vec<u8>, (u64, Instant, Option<f64>)>,
    /// Pools that are shown, with the comparison of their draws.
    seen: HashMap<Vec<u8>, (Pool, Drift)>,
}

impl Pools {
    /// Returns summaries of all pools, with the rates of their draws.
    fn summarise(&mut self, client: &mut Client) -> anyhow::Result<Vec<Summary>> {
        let mut all = Vec::new();
        for key in self.listing.read(client)? {
            let state = ask(client, &[b"POOL.STATE", &*key, b"COUNT", b"1"])?;
            let at = Instant::now();
            // Leaves out a pool that has gone since.
            let Some(mut summary) = Summary::of(&key, &state) else { continue };
            let before = self.summaries.get(&key).copied();
            let (draws, since, rate) = match before {
                Some((draws, since, rate)) if at - since < WINDOW_MIN => (draws, since, rate),
                Some((draws, since, _)) => {
                    let seconds = (at - since).as_secs_f64();
                    let made = summary.draws.checked_sub(draws);
                    (summary.draws, at, made.map(|made| made as f64 / seconds))
                }
                None => (summary.draws, at, None),
            };
            summary.rate = rate;
            self.summaries.insert(key, (draws, since, rate));
            all.push(summary);
        }
        let there: std::collections::HashSet<&[u8]> = all.iter().map(|summary| &*summary.key).collect();
        self.summaries.retain(|key, _| there.contains(&**key));
        Ok(all)
    }

    /// Returns one pool with its items, and compares its draws with its odds.
    fn look(&mut self, client: &mut Client, summary: &Summary) -> anyhow::Result<Option<Pool>> {
        let Some(mut pool) = read(client, summary)? else { return Ok(None) };
        let drift = match self.seen.remove(&summary.key) {
            Some((before, mut drift)) => {
                drift.note(&before, &pool);
                drift
            }
            None => Drift::default(),
        };
        pool.verdict = drift.verdict();
        self.seen.insert(summary.key.clone(), (pool.clone(), drift));
        Ok(Some(pool))
    }
}

/// Reads state and odds in one transaction; `None` if the pool is gone.
fn read(client: &mut Client, summary: &Summary) -> anyhow::Result<Option<Pool>> {
    let most = ITEMS_MAX.to_string();
    ask(client, &["MULTI"])?;
    for command in ["POOL.STATE", "POOL.ODDS"] {
        ask(client, &[command.as_bytes(), &summary.key, b"COUNT", most.as_bytes()])?;
    }
    let both = ask(client, &["EXEC"])?;
    let Some([state, odds]) = both.as_elements() else {
        bail!("the server answers EXEC without both answers")
    };
    if matches!(state.plain(), Value::Null) || state.as_error().is_some() {
        return Ok(None);
    }
    let pool = Pool::of(summary.clone(), state, odds);
    pool.map(Some).context("the server describes a pool in another way than this version does")
}

impl Subject for Pools {
    type Reading = Reading;

    fn read(&mut self, client: &mut Client) -> anyhow::Result<Reading> {
        let mut all = self.summarise(client)?;
        self.sort.order(&mut all);
        let (mut pools, (mut draws, mut reservations)) = (Vec::new(), (0, 0));
        for summary in &all {
            draws += summary.draws;
            reservations += summary.reservations;
        }
        let rate = all
            .iter()
            .map(|summary| summary.rate)
            .collect::<Option<Vec<f64>>>()
            .map(|rates| rates.iter().sum());
        for summary in all.iter().take(self.keys) {
            pools.extend(self.look(client, summary)?);
        }
        let count = all.len();
        Ok(Reading { count, is_all: self.listing.is_complete(), draws, rate, reservations, pools })
    }

    fn press(&mut self, key: u8) -> bool {
        self.sort = match key {
            b'd' => Sort::Rate,
            b't' => Sort::Draws,
            b'r' => Sort::Reservations,
            b'n' => Sort::Name,
            _ => return false,
        };
        true
    }

    fn status(&self) -> String {
        format!("by {}; d t r n order, q leaves", self.sort.word())
    }

    fn lines(&self, now: &Reading, _: Option<&Reading>) -> Vec<Line> {
        text::lines(now, self.items)
    }

    fn document(&self, now: &Reading, _: Option<&Reading>) -> Json {
        json::document(now, self.items)
    }
}
