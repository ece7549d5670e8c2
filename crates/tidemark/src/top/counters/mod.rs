//! `tidemark top counters`: how counters move, what of it is committed, and which of them move
//! most.

mod json;
mod reading;
mod sort;
#[cfg(test)]
mod test_reading;
mod text;

use super::line::Line;
use super::view::{self, Subject, ViewArgs};
use crate::asking::ask;
use anyhow::Context;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use reading::{Rates, Reading};
use serde_json::Value;
use sort::Sort;
use std::process::ExitCode;
use std::time::Instant;
use tidemark_lab::client::Client;

/// Arguments of `tidemark top counters`.
#[derive(Args)]
#[command(disable_help_flag = true, after_help = AFTER_HELP)]
pub(crate) struct CountersArgs {
    #[command(flatten)]
    view: ViewArgs,
    /// What the counters that move most are ordered by
    #[arg(short, long, value_enum, default_value_t)]
    sort: Sort,
    /// How many of them are shown
    #[arg(short, long, default_value_t = 10, value_parser = RangedU64ValueParser::<usize>::new().range(0..=1000))]
    keys: usize,
}

const AFTER_HELP: &str = "\
On a terminal, without --count, a page stays in place: m, u and c order by moves, units and churn, q or Ctrl-C leaves.
Elsewhere readings follow each other as text. NO_COLOR turns colours off. If the server goes away, the program waits for it.
Exit codes: 0 done; 1 it failed, and the last line says why; 2 the command line is wrong.
Environment: TIDEMARK_PASSWORD stands in for --password, which other users of the machine can see.";

/// Shows the counters.
pub(super) fn run(args: &CountersArgs) -> anyhow::Result<ExitCode> {
    view::run(&args.view, args.view.target(), Counters { sort: args.sort, keys: args.keys })
}

/// The order, and the number of keys to show.
struct Counters {
    sort: Sort,
    keys: usize,
}

impl Subject for Counters {
    type Reading = Reading;

    fn read(&mut self, client: &mut Client) -> anyhow::Result<Reading> {
        let info = ask(client, &["INFO", "counters"])?;
        let at = Instant::now();
        let top = ask(client, &["COUNTER.TOP", &self.keys.to_string(), "BY", self.sort.word()])?;
        Reading::of(&info, &top, at).context("the server describes no counters, or not those of this version")
    }

    fn press(&mut self, key: u8) -> bool {
        self.sort = match key {
            b'm' => Sort::Moves,
            b'u' => Sort::Units,
            b'c' => Sort::Churn,
            _ => return false,
        };
        true
    }

    fn status(&self) -> String {
        format!("by {}; m u c order, q leaves", self.sort.word().to_lowercase())
    }

    fn lines(&self, now: &Reading, before: Option<&Reading>) -> Vec<Line> {
        text::lines(now, rates(now, before).as_ref())
    }

    fn document(&self, now: &Reading, before: Option<&Reading>) -> Value {
        json::document(now, rates(now, before).as_ref())
    }
}

fn rates(now: &Reading, before: Option<&Reading>) -> Option<Rates> {
    before.and_then(|before| now.rates_since(before))
}
