//! `WireOps`: draws from a server, in turns with similar commands of that server and of Redis.
//!
//! One connection sends many requests before it reads the answers, and checks every answer. Reading
//! and checking are part of the measured time.

mod pipeline;
mod prizes;

use crate::client::Client;
use crate::micro::benchmark::Benchmark;
use crate::target::Target;
use pipeline::Pipeline;
use prizes::{Counting, Drawing, Popping};
use serde::Serialize;
use std::time::Duration;

/// Which servers are asked.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub(super) struct WireOptions {
    /// Measure draws from a server on this port as well, by the rows of `WireOps`
    #[arg(short, long, value_name = "PORT")]
    port: Option<u16>,
    /// Its host
    #[arg(long, default_value = "localhost")]
    host: String,
    /// Its password
    #[arg(long, env = "TIDEMARK_PASSWORD", hide_env_values = true)]
    #[serde(skip)]
    password: Option<String>,
    /// A Redis to be measured in turns with it, such as <redis://localhost:6379>
    #[arg(long, value_name = "URL", requires = "port")]
    #[serde(skip_serializing_if = "Option::is_none")]
    redis: Option<Target>,
}

impl WireOptions {
    /// Returns whether a server is given.
    pub(super) fn is_asked_for(&self) -> bool {
        self.port.is_some()
    }
}

/// Timeout of an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Name of the group measured in turns.
const GROUP: &str = "what is asked of a server";
/// Draws per bulk request.
const PARCEL: u64 = 1_000;

/// Returns the benchmarks for these servers.
pub(super) fn suite(options: &WireOptions) -> Vec<Benchmark> {
    let Some(port) = options.port else { return Vec::new() };
    let target = Target { password: options.password.clone(), ..Target::new(&options.host, port) };
    let mut all = vec![
        drawing("draw", "POOL.DRAW, one in each request", 1, ALWAYS, &target).at_most(1e9 / 300_000.0),
        drawing("draw_count_1000", "POOL.DRAW … COUNT 1000; of each draw", PARCEL, ALWAYS, &target)
            .at_most(1e9 / 1_000_000.0),
        drawing("draw_server", "POOL.DRAW of a pool that follows the server's mode", 1, SERVER, &target),
        counting("incr", "INCR of one key", &target),
    ];
    if let Some(redis) = &options.redis {
        all.extend([
            counting("redis_incr", "INCR of one key, of Redis", redis),
            popping("redis_spop", "SPOP of Redis: a raffle whose tickets are members of a set", SET, redis),
            popping(
                "redis_zpopmin",
                "ZPOPMIN of Redis: prizes that were put into an order before",
                SORTED_SET,
                redis,
            ),
        ]);
    }
    all
}

/// When a draw is answered: once it is on disk ...
const ALWAYS: &str = "ALWAYS";
/// ... or when the server's mode permits.
const SERVER: &str = "SERVER";

const SET: Popping = Popping { add: "SADD", with_score: false, pop: "SPOP" };
const SORTED_SET: Popping = Popping { add: "ZADD", with_score: true, pop: "ZPOPMIN" };

fn row(name: &str, measures: &str) -> (String, String) {
    let measures =
        format!("{measures}; 10,000 of it asked by one connection, with up to some 1,000 under way");
    (format!("WireOps.{name}"), measures)
}

fn drawing(name: &str, what: &str, parcel: u64, durability: &'static str, target: &Target) -> Benchmark {
    let ((name, measures), target) = (row(name, what), target.clone());
    Benchmark::new(name, measures, move |sizes| {
        Drawing::new(connect(&target)?, parcel.min(sizes.batch), durability)?.work(sizes.batch)
    })
    .in_group(GROUP)
    .in_summary()
    .of("draw")
}

fn counting(name: &str, what: &str, target: &Target) -> Benchmark {
    let ((name, measures), target) = (row(name, what), target.clone());
    Benchmark::new(name, measures, move |sizes| Counting::new(connect(&target)?)?.work(sizes.batch))
        .in_group(GROUP)
}

fn popping(name: &str, what: &str, popping: Popping, target: &Target) -> Benchmark {
    let ((name, measures), target) = (row(name, what), target.clone());
    Benchmark::new(name, measures, move |sizes| popping.work(connect(&target)?, sizes.batch)).in_group(GROUP)
}

fn connect(target: &Target) -> anyhow::Result<Pipeline> {
    Ok(Pipeline::new(Client::connect(target, PATIENCE)?, PATIENCE))
}

#[cfg(test)]
mod tests;
