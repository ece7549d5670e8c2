//! The reactive probe: what a bystander's single request costs while the load runs.

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
    /// Uses PING, or HELLO on a server without it.
    pub(super) fn new(mut client: Client, interval: Duration) -> Result<Self, ClientError> {
        let request = if client.call(&["PING"])?.as_error().is_some() { "HELLO" } else { "PING" };
        Ok(Probe { client, interval, request })
    }

    /// Probes until the clock's end; latencies count in the measured window.
    ///
    /// A probe is due at a fixed time and its latency counts from then, so that a stall is not hidden by the probes
    /// that it prevented.
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

/// From when a probe's latency counts that was due at `due`, when the reply before it came at `free_at` and the thread
/// was ready to send at `now`. If the server's own slowness has delayed it, it counts from when it was due; if only the
/// thread has slept too long, that is not the server's doing.
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
        // One that was due at 200 was not delayed; sleeping until 203 is the client's doing.
        assert_eq!(204 - counted_from(200, 191, 203), 1);
        // A stall over several intervals delays each probe by what is left of it.
        let delays: Vec<u64> = [100, 200, 300].iter().map(|due| 350 - counted_from(*due, 350, 350)).collect();
        assert_eq!(delays, [250, 150, 50]);
    }
}
