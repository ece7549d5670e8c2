//! The reactive probe: what a bystander's single request costs while the load runs.

use super::load::Clock;
use crate::client::{Client, ClientError};
use crate::latency::Latencies;
use std::time::{Duration, Instant};

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
        let interval = u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX);
        while due < clock.end {
            std::thread::sleep(clock.instant(due).saturating_duration_since(Instant::now()));
            // Going late is the sleep's doing only if nothing was waited for.
            let sent = if clock.now() - due < interval { clock.now() } else { due };
            let reply = self.client.call(&[self.request])?;
            if let Some(text) = reply.as_error() {
                anyhow::bail!(
                    "the probe's {} was answered {:?}",
                    self.request,
                    String::from_utf8_lossy(text)
                );
            }
            if due >= clock.measured_from {
                latencies.record_nanos(clock.now() - sent);
            }
            due = due.saturating_add(interval);
        }
        Ok(latencies)
    }
}
