//! `index`: finding series by their labels through a running server, over one connection. Only with
//! `--server`.

use super::options::TimeSeriesOptions;
use super::row::{Findings, Row, Work};
use crate::client::Client;
use crate::target::Target;
use anyhow::{Context, bail, ensure};
use std::time::Duration;
use tidemark_server::resp::{Value, encode_request};

/// Longest wait for a reply.
const PATIENCE: Duration = Duration::from_mins(1);

/// Searches of an iteration.
const SEARCHES: u64 = 100;

/// Values of each of the two labels that are searched for: a pair of them is that of one series in a
/// hundred.
const VALUES: u64 = 10;

/// Commands that are sent together to create or delete series.
const PIPELINE: u64 = 1_000;

pub(super) fn rows(options: &TimeSeriesOptions) -> Vec<Row> {
    let Some(server) = options.server.clone() else { return Vec::new() };
    let series = options.indexed_series;
    let found = series / (VALUES * VALUES);
    vec![Row {
        name: "index/find_by_two_labels".to_owned(),
        measures: format!("TS.QUERYINDEX that finds {found} of {series} series with 3 labels by 2 of them"),
        operation: "lookup",
        operations: SEARCHES,
        iterations: options.file_iterations,
        start: Box::new(move || {
            let client =
                Client::connect(&server, PATIENCE).with_context(|| format!("the server at {server}"))?;
            Ok(Box::new(Searching { client, series, server: server.clone(), answers: Vec::new() }))
        }),
    }]
}

/// Series that are searched for.
struct Searching {
    client: Client,
    server: Target,
    series: u64,
    /// The answers of an iteration, with the labels that were searched for.
    answers: Vec<((u64, u64), Value)>,
}

fn key(at: u64) -> String {
    format!("bench:series:indexed:{at:08}")
}

/// Returns the values of the two labels of a series.
fn labels(at: u64) -> (u64, u64) {
    (at % VALUES, at / VALUES % VALUES)
}

/// Sends a command for each series, and checks that none is refused.
fn for_each_series(
    client: &mut Client,
    series: u64,
    command: impl Fn(u64) -> Vec<String>,
) -> anyhow::Result<()> {
    for first in (0..series).step_by(PIPELINE as usize) {
        let all = first..(first + PIPELINE).min(series);
        let mut requests = Vec::new();
        all.clone().for_each(|at| encode_request(&mut requests, &command(at)));
        client.send_encoded(&requests)?;
        for _ in all {
            if let Value::Error(text) =
                client.receive(Some(PATIENCE))?.context("the server answers in time")?
            {
                bail!("the server answered {}", String::from_utf8_lossy(&text));
            }
        }
    }
    Ok(())
}

impl Work for Searching {
    fn prepare(&mut self, iteration: u64) -> anyhow::Result<()> {
        self.answers.clear();
        if iteration > 0 {
            return Ok(());
        }
        for_each_series(&mut self.client, self.series, |at| vec!["DEL".to_owned(), key(at)])?;
        for_each_series(&mut self.client, self.series, |at| {
            let (region, job) = labels(at);
            let words = format!("TS.CREATE {} LABELS region r{region} job j{job} host h{at}", key(at));
            words.split(' ').map(str::to_owned).collect()
        })
    }

    fn run(&mut self) -> anyhow::Result<()> {
        for search in 0..SEARCHES {
            let (region, job) = labels(search);
            let (region_is, job_is) = (format!("region=r{region}"), format!("job=j{job}"));
            let answer = self.client.call(&["TS.QUERYINDEX", &region_is, &job_is])?;
            self.answers.push(((region, job), answer));
        }
        Ok(())
    }

    fn check(&mut self) -> anyhow::Result<Findings> {
        for (searched, answer) in &self.answers {
            let (Value::Array(keys) | Value::Set(keys)) = answer else {
                bail!("TS.QUERYINDEX answers keys, and not {answer:?}")
            };
            let mut found: Vec<String> = keys
                .iter()
                .filter_map(Value::as_bytes)
                .map(|key| String::from_utf8_lossy(key).into())
                .collect();
            found.sort_unstable();
            let expected = (0..self.series).filter(|at| labels(*at) == *searched).map(key);
            ensure!(found.into_iter().eq(expected), "a search for {searched:?} found other series");
        }
        ensure!(self.answers.len() as u64 == SEARCHES, "every search is answered");
        Ok(Findings::default())
    }
}

impl Drop for Searching {
    fn drop(&mut self) {
        // On a connection of its own: the other one may have answers left. The next run removes what stays.
        if let Ok(mut client) = Client::connect(&self.server, PATIENCE) {
            let _ = for_each_series(&mut client, self.series, |at| vec!["DEL".to_owned(), key(at)]);
        }
    }
}
