//! Sends the files of a snapshot over a transport, at a limited rate.

use std::collections::VecDeque;
use std::ops::Add;
use std::time::Duration;

use super::outgoing::{Outgoing, OutgoingFiles, SendError};
use super::waiting::{OnTokio, Waiting};
use crate::ids::NodeId;
use crate::net::{Lane, Transport};

/// Rate and limits of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderSettings {
    /// Bytes of a chunk, at most 1 MiB.
    pub chunk_bytes: usize,
    /// Chunks that are under way at most.
    pub chunks_under_way: usize,
    /// Bytes per second at most.
    pub bytes_per_second: u64,
    /// Attempts to get an answer, one `retry_pause` apart.
    pub attempts: u32,
    /// Pause after a connection has failed.
    pub retry_pause: Duration,
}

impl Default for SenderSettings {
    fn default() -> Self {
        Self {
            chunk_bytes: 512 << 10,
            chunks_under_way: 4,
            bytes_per_second: 128 << 20,
            attempts: 50,
            retry_pause: Duration::from_millis(100),
        }
    }
}

/// Sends the files of a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotSender {
    settings: SenderSettings,
}

impl SnapshotSender {
    /// Makes a sender. Values of zero count as one.
    pub fn new(settings: SenderSettings) -> Self {
        Self { settings }
    }

    /// Sends the files that the receiver does not have, and returns when it has all of them, verified and
    /// durable. Connections that fail are tried again; what has arrived is not sent again. Dropping the
    /// future ends the transfer; the receiver keeps what it has.
    pub async fn send<T: Transport>(
        &self,
        files: OutgoingFiles,
        transport: &T,
        to: NodeId,
    ) -> Result<(), SendError> {
        self.send_on::<OnTokio, T>(files, transport, to).await
    }

    /// Does the same on any runtime.
    pub(crate) async fn send_on<W: Waiting, T: Transport>(
        &self,
        files: OutgoingFiles,
        transport: &T,
        to: NodeId,
    ) -> Result<(), SendError> {
        let mut outgoing = Outgoing::new(files, self.settings.chunk_bytes);
        let mut answers = VecDeque::new();
        let mut pace = Pace::new(self.settings.bytes_per_second, W::now());
        let mut failures = 0;
        while !outgoing.is_done() {
            while answers.len() < self.settings.chunks_under_way.max(1) {
                let request;
                // Reads the next chunk.
                let read = W::run_blocking(move || {
                    let request = outgoing.next_request();
                    (outgoing, request)
                });
                // Otherwise the runtime of this member ends.
                let ended = SendError::Unreachable { attempts: failures };
                (outgoing, request) = read.await.ok_or(ended)?;
                let Some(request) = request? else { break };
                W::sleep_until(pace.leave_at(W::now(), request.len())).await;
                answers.push_back(transport.send(to, Lane::Snapshot, request));
            }
            let answer = match answers.pop_front() {
                Some(answer) => answer.await.ok(),
                None => return Err(SendError::Protocol("no request is open, and the transfer is not done")),
            };
            match answer {
                Some(answer) => {
                    failures = 0;
                    outgoing.take_answer(&answer)?;
                }
                None => {
                    answers.clear();
                    outgoing.connection_failed();
                    failures += 1;
                    if failures >= self.settings.attempts.max(1) {
                        return Err(SendError::Unreachable { attempts: failures });
                    }
                    W::sleep_until(W::now() + self.settings.retry_pause).await;
                }
            }
        }
        Ok(())
    }
}

/// Spreads bytes over time.
#[derive(Debug)]
struct Pace<I> {
    bytes_per_second: u64,
    /// When the next bytes may leave.
    next: I,
}

impl<I: Copy + Ord + Add<Duration, Output = I>> Pace<I> {
    fn new(bytes_per_second: u64, now: I) -> Self {
        Self { bytes_per_second: bytes_per_second.max(1), next: now }
    }

    /// Returns when these bytes may leave. Time that was not used is not made up for: no burst follows a
    /// pause.
    fn leave_at(&mut self, now: I, bytes: usize) -> I {
        let leave = self.next.max(now);
        self.next = leave + Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        leave
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_the_time_of_their_rate_and_pauses_are_not_made_up_for() {
        let mut now = std::time::Instant::now();
        let mut pace = Pace::new(1000, now);
        for _ in 0..2 {
            let begin = now;
            for _ in 0..10 {
                now = pace.leave_at(now, 100);
            }
            assert_eq!((now - begin).as_millis(), 900);
            now += Duration::from_mins(1);
        }
    }
}
