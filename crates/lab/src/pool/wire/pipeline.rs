//! Pipelined requests.

use crate::client::Client;
use anyhow::Context;
use std::time::{Duration, Instant};
use tidemark_server::resp::{Value, encode_request};

/// Requests sent together; up to twice as many are in flight. Their answers fit into the
/// connection's socket buffers, so that neither side blocks on the other's reading.
const WINDOW: u64 = 500;
/// Number of answer values that fit there.
const VALUES: u64 = 4_000;

/// A connection with pipelined requests.
pub(super) struct Pipeline {
    client: Client,
    patience: Duration,
}

impl Pipeline {
    pub(super) fn new(client: Client, patience: Duration) -> Self {
        Pipeline { client, patience }
    }

    /// Sends one request and returns its answer, which must not be an error.
    pub(super) fn call<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> anyhow::Result<Value> {
        accepted(self.client.call(arguments)?)
    }

    /// Sends a request `times` times and checks every answer; each has about `values` values.
    /// Returns the time.
    pub(super) fn repeat(
        &mut self,
        arguments: &[&str],
        times: u64,
        values: u64,
        mut look: impl FnMut(Value) -> anyhow::Result<()>,
    ) -> anyhow::Result<Duration> {
        let window = WINDOW.min(VALUES / values).max(1);
        let mut requests = Vec::new();
        (0..window).for_each(|_| encode_request(&mut requests, arguments));
        let one = requests.len() / window as usize;
        let (mut unsent, mut awaited) = (times, 0);
        let clock = Instant::now();
        while unsent + awaited > 0 {
            while unsent > 0 && awaited <= window {
                let sent = window.min(unsent);
                self.client.send_encoded(&requests[..one * sent as usize])?;
                (unsent, awaited) = (unsent - sent, awaited + sent);
            }
            let answer = self.client.receive(Some(self.patience))?.context("no answer in time")?;
            look(accepted(answer)?)?;
            awaited -= 1;
        }
        Ok(clock.elapsed())
    }
}

/// Returns the answer unless it is an error.
fn accepted(answer: Value) -> anyhow::Result<Value> {
    if let Some(text) = answer.as_error() {
        anyhow::bail!("the server refuses: {}", String::from_utf8_lossy(text));
    }
    Ok(answer)
}
