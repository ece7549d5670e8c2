//! Clients of a simulated group: what they are answered must stay true.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use openraft::type_config::TypeConfigExt;
use tidemark_engine::Engine;
use tidemark_log::Lsn;

use super::history::Operations;
use super::lock::lock;
use super::memory::run;
use super::world::{Running, World, count};
use crate::raft::Simulated;
use crate::term::Term;

/// How long a client waits for an answer.
pub(super) const PATIENCE: Duration = Duration::from_millis(400);
/// Number of clients; each has a register.
pub(super) const CLIENTS: u64 = 3;
/// Longest pause between two looks at what an answer waits for, if the log does not move.
const LOOK_PAUSE: Duration = Duration::from_millis(2);

/// Returns the client that numbers an operation.
fn client_of(operation: u64) -> u64 {
    operation >> 40
}

/// Returns whether an operation adds itself to its client's list, instead of setting its register.
fn is_push(operation: u64) -> bool {
    operation.is_multiple_of(3)
}

fn register_of(client: u64) -> Vec<u8> {
    format!("register:{client}").into_bytes()
}

fn list_of(client: u64) -> Vec<u8> {
    format!("list:{client}").into_bytes()
}

/// Returns the command of an operation, with a value that is larger by `size` bytes.
fn command_of(operation: u64, size: usize) -> Vec<Vec<u8>> {
    let client = client_of(operation);
    let value = format!("{operation:016x}{:7>size$}", "").into_bytes();
    if is_push(operation) {
        vec![b"RPUSH".to_vec(), list_of(client), value]
    } else {
        vec![b"SET".to_vec(), register_of(client), value]
    }
}

/// Returns the operation that a value names.
fn operation_of_value(value: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(value.get(..16)?).ok()?, 16).ok()
}

/// Returns the values of an answer: values have no line ends.
fn values_in(answer: &[u8]) -> impl Iterator<Item = &[u8]> {
    answer.split(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"$") && !line.starts_with(b"*"))
}

fn operation_in(answer: &[u8]) -> Option<u64> {
    values_in(answer).find_map(operation_of_value)
}

/// Compares registers and lists with what the operations up to record `lsn` have made. The error says what
/// differs.
pub(super) fn compare(engine: &Engine, lsn: Lsn, operations: &Operations) -> Result<(), String> {
    for client in 1..=CLIENTS {
        let of_client = || {
            let all = operations.range(..=lsn.0).map(|(_, operation)| *operation);
            all.filter(move |operation| client_of(*operation) == client)
        };
        let expected = of_client().rfind(|operation| !is_push(*operation));
        let shown = operation_in(&run(engine, &[b"GET".to_vec(), register_of(client)]).0);
        if shown != expected {
            return Err(format!("the register of client {client} is {shown:x?}, expected {expected:x?}"));
        }
        let expected: Vec<_> = of_client().filter(|operation| is_push(*operation)).collect();
        let all = [b"LRANGE".to_vec(), list_of(client), b"0".to_vec(), b"-1".to_vec()];
        let shown: Vec<u64> = values_in(&run(engine, &all).0).filter_map(operation_of_value).collect();
        if shown != expected {
            let at = shown.iter().zip(&expected).take_while(|(one, other)| one == other).count();
            return Err(format!(
                "the list of client {client} has {:x?} at {at}, expected {:x?}; {} and {} values",
                shown.get(at),
                expected.get(at),
                shown.len(),
                expected.len()
            ));
        }
    }
    Ok(())
}

impl World {
    /// Returns a member that takes itself for the leader.
    fn any_leader(&self) -> Option<(Term, Running)> {
        let running = lock(&self.running);
        let leading: Vec<_> =
            running.values().filter_map(|running| Some((running.leading()?, running.clone()))).collect();
        let chosen = self.random(|rng| rng.usize(..leading.len().max(1)));
        leading.get(chosen).cloned()
    }

    /// Sets its own register at whatever member leads, and waits for what becomes of it. Reads now and then.
    pub(super) async fn client(self: Arc<Self>, client: u64, pace_us: u64) {
        let mut number = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            let leader = self.any_leader();
            // During a change no command runs.
            if let Some((term, running)) = leader.filter(|(_, leader)| !leader.node.reign.is_paused()) {
                if self.random(|rng| rng.u32(..4)) == 0 {
                    self.read(term, running).await;
                } else {
                    number += 1;
                    self.write((client << 40) | number, term, running).await;
                }
            }
            let pause = self.random(|rng| rng.u64(200..pace_us));
            Simulated::sleep(Duration::from_micros(pause)).await;
        }
    }

    async fn write(&self, operation: u64, term: Term, running: Running) {
        let size = self.random(|rng| if rng.u32(..20) == 0 { rng.usize(..4000) } else { rng.usize(..60) });
        running.disk.read_clock();
        let (answer, lsn) = lock(&running.memory).run(&command_of(operation, size));
        if answer.starts_with(b"-") {
            let answer = String::from_utf8_lossy(&answer).into_owned();
            return self.history.fail(format!("operation {operation:x} is refused: {answer}"));
        }
        self.history.note_told(operation, lsn.0);
        if self.is_committed(lsn, term, &running, false).await {
            self.history.note(format_args!("operation {operation:x} is acknowledged at {lsn}"));
            lock(&self.acknowledged).push((operation, lsn.0));
        } else {
            self.history.note(format_args!("operation {operation:x} at {lsn}: unknown"));
            count(&self.counts.unknown);
        }
    }

    /// Reads a register: it shows what was acknowledged before, or something newer.
    async fn read(&self, term: Term, running: Running) {
        let client = self.random(|rng| rng.u64(1..=CLIENTS));
        let before = self.newest_acknowledged(client);
        running.disk.read_clock();
        let (answer, lsn) = lock(&running.memory).run(&[b"GET".to_vec(), register_of(client)]);
        let shown = operation_in(&answer);
        let lsn = if self.faults.read_without_lease { self.lsn_of(shown).unwrap_or(lsn) } else { lsn };
        if self.is_committed(lsn, term, &running, true).await {
            count(&self.counts.reads);
            if shown < before {
                self.history.fail(format!("a read shows {shown:x?} when {before:x?} was acknowledged"));
            }
        }
    }

    /// Returns where an acknowledged operation is in the log. A leader that was cut off and takes writes has
    /// some that are not committed: if reads wait for all of them, they need no lease.
    fn lsn_of(&self, shown: Option<u64>) -> Option<Lsn> {
        let acknowledged = lock(&self.acknowledged);
        acknowledged.iter().rev().find(|(operation, _)| Some(*operation) == shown).map(|(_, lsn)| Lsn(*lsn))
    }

    /// Returns the newest acknowledged operation on a client's register.
    fn newest_acknowledged(&self, client: u64) -> Option<u64> {
        let acknowledged = lock(&self.acknowledged);
        let mut operations = acknowledged.iter().rev().map(|(operation, _)| *operation);
        operations.find(|operation| client_of(*operation) == client && !is_push(*operation))
    }

    /// Waits until what shows `lsn` may be answered. Returns false if it never may.
    async fn is_committed(&self, lsn: Lsn, term: Term, running: &Running, reads: bool) -> bool {
        let began = Simulated::now();
        while Simulated::now() - began < PATIENCE && running.disk.is_alive() {
            let is_committed = running.log.committed() >= lsn;
            if running.leading() != Some(term) {
                return false;
            }
            let needs_lease = reads && !self.faults.read_without_lease;
            if is_committed && (!needs_lease || running.has_lease(term)) {
                return true;
            }
            let _ = Simulated::timeout(LOOK_PAUSE, running.moved.notified()).await;
        }
        false
    }
}
