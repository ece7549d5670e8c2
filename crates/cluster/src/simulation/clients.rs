//! Clients of a simulated group: what they are answered must stay true.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use openraft::type_config::TypeConfigExt;
use tidemark_log::Lsn;

use super::history::operations;
use super::lock::lock;
use super::world::{LeaderMemory, Running, World, count};
use crate::raft::Simulated;
use crate::term::Term;

/// How long a client waits for an answer.
pub(super) const PATIENCE: Duration = Duration::from_millis(400);
/// Number of clients; each has a register.
pub(super) const CLIENTS: u64 = 3;
/// Pause between two looks at what an answer waits for.
const LOOK_PAUSE: Duration = Duration::from_micros(300);

impl Running {
    /// Returns the memory of the leader of `term`, which begins with its log.
    fn memory(&self, term: Term) -> MutexGuard<'_, LeaderMemory> {
        let mut memory = lock(&self.memory);
        if memory.term != term {
            let of_log = operations(self.node.driver.member());
            *memory = LeaderMemory {
                term,
                newest: of_log.into_iter().map(|(operation, lsn)| (operation >> 40, lsn)).collect(),
            };
        }
        memory
    }
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
            if let Some((term, running)) = self.any_leader() {
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
        drop(running.memory(term));
        let size = self.random(|rng| if rng.u32(..20) == 0 { rng.usize(..4000) } else { rng.usize(..60) });
        running.disk.read_clock();
        let appended = running.log.append(operation, 1, |into| {
            into.extend_from_slice(&operation.to_le_bytes());
            into.resize(into.len() + size, 7);
        });
        // A refused record has changed nothing.
        let Ok(lsn) = appended else { return };
        running.memory(term).newest.insert(operation >> 40, lsn.0);
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
        let shown = running.memory(term).newest.get(&client).copied();
        if self.is_committed(Lsn(shown.unwrap_or(0)), term, &running, true).await {
            count(&self.counts.reads);
            if shown < before {
                self.history.fail(format!("a read shows {shown:?} when {before:?} was acknowledged"));
            }
        }
    }

    /// Returns the LSN of the newest acknowledged write of a client.
    fn newest_acknowledged(&self, client: u64) -> Option<u64> {
        let acknowledged = lock(&self.acknowledged);
        acknowledged.iter().rev().find(|(operation, _)| operation >> 40 == client).map(|(_, lsn)| *lsn)
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
            Simulated::sleep(LOOK_PAUSE).await;
        }
        false
    }
}
