//! The reactive probe: latency of a single request by an idle client while the load runs.

use super::clock::{Clock, nanos};
use crate::client::{Client, ClientError};
use crate::latency::Latencies;
use std::time::Duration;

/// A connection that sends one small request at a fixed interval.
pub(super) struct Probe {
    client: Client,
    interval: Duration,
    request: &'static str,
}

impl Probe {
    /// Creates a probe that uses PING, or HELLO on a server without PING.
    pub(super) fn new(mut client: Client, interval: Duration) -> Result<Self, ClientError> {
        let request = if client.call(&["PING"])?.as_error().is_some() { "HELLO" } else { "PING" };
        Ok(Probe { client, interval, request })
    }

    /// Probes until the clock's end; records the latencies in the measured window.
    ///
    /// A probe is due at a fixed time and its latency counts from then. A stall is therefore not
    /// hidden by the probes that it prevented.
    pub(super) fn run(mut self, clock: &Clock) -> anyhow::Result<Latencies> {
        let mut latencies = Latencies::default();
        let mut due = clock.now();
        let mut free_at = due;
        let interval = nanos(self.interval);
        while due < clock.end() {
            clock.sleep_until(due);
            if clock.now() < due {
                break;
            }
            let started = counted_from(due, free_at, clock.now());
            let reply = self.client.call(&[self.request])?;
            if let Some(text) = reply.as_error() {
                anyhow::bail!(
                    "the probe's {} was answered {:?}",
                    self.request,
                    String::from_utf8_lossy(text)
                );
            }
            free_at = clock.now();
            if due >= clock.measured_from {
                latencies.record_nanos(free_at.saturating_sub(started));
            }
            due = due.saturating_add(interval);
        }
        Ok(latencies)
    }
}

/// Returns the time from which the latency of a probe counts. The probe was due at `due`, the reply
/// before it arrived at `free_at`, and the thread was ready to send at `now`. A probe that the
/// server delayed counts from its due time. A delay by an oversleeping thread is not charged to the
/// server.
fn counted_from(due: u64, free_at: u64, now: u64) -> u64 {
    if free_at > due { due } else { now }
}

#[cfg(test)]
mod tests {
    use super::counted_from;

    #[test]
    fn a_stall_is_seen_by_every_probe_that_it_delayed() {
        // An interval of 100: the probe due at 0 is answered at 190, the next was due at 100.
        assert_eq!(190 - counted_from(100, 190, 190), 90);
        // The probe due at 200 was not delayed by the server; the client overslept until 203.
        assert_eq!(204 - counted_from(200, 191, 203), 1);
        // A stall over several intervals delays each probe by the rest of the stall.
        let delays: Vec<u64> = [100, 200, 300].iter().map(|due| 350 - counted_from(*due, 350, 350)).collect();
        assert_eq!(delays, [250, 150, 50]);
    }
}
