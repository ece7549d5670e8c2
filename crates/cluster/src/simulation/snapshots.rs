//! Snapshots of the members' memory, which they take while everything else happens.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use openraft::type_config::TypeConfigExt;
use tidemark_engine::section::KEYSPACE;
use tidemark_engine::{Engine, TakeError};
use tidemark_log::{Lsn, SnapshotError, SnapshotWriter, Snapshots};

use super::clients::compare;
use super::lock::lock;
use super::memory::{Memory, load};
use super::world::{Running, World, count};
use crate::raft::Simulated;

/// How long a leader waits until what its snapshot has is committed.
const PATIENCE: Duration = Duration::from_secs(1);
/// Pause between two looks whether that has come.
const LOOK_PAUSE: Duration = Duration::from_millis(2);

impl World {
    /// Takes snapshots until the process ends.
    pub(super) async fn take_snapshots(self: Arc<Self>, node: u64, running: Running) {
        let mut newest = Lsn::ZERO;
        while running.disk.is_alive() && !self.is_over.load(Ordering::Relaxed) {
            let pause = self.random(|rng| rng.u64(50..900));
            Simulated::sleep(Duration::from_millis(pause)).await;
            if !running.disk.is_alive() {
                return;
            }
            match self.take_snapshot(&running, newest).await {
                Ok(None) => {}
                Ok(Some(lsn)) => {
                    newest = lsn;
                    if running.disk.is_alive() {
                        count(&self.counts.snapshots);
                        self.history.note(format_args!("member {node} has a snapshot at {lsn}"));
                    }
                }
                // Nothing that a process without a disk does matters.
                Err(error) if running.disk.is_alive() => {
                    self.history.fail(format!("member {node} takes no snapshot: {error}"));
                }
                Err(_) => return,
            }
        }
    }

    /// Takes one snapshot, if memory has records behind `newest`. Returns its last record.
    async fn take_snapshot(&self, running: &Running, newest: Lsn) -> Result<Option<Lsn>, String> {
        let leading = running.leading();
        let engine = lock(&running.memory).engine(leading)?.filter(|engine| engine.applied() > newest);
        let Some(engine) = engine else { return Ok(None) };
        if engine.is_following() {
            // Before the log may release them.
            self.note_log(running);
            return match engine.take_snapshot(false, || (), || true) {
                Ok(taken) => Ok(Some(taken.lsn)),
                // A leader's memory that follows now may have what is not committed yet, or never will be.
                Err(TakeError::Failed(SnapshotError::Log(_))) => Ok(None),
                Err(error) => Err(error.to_string()),
            };
        }
        // What `take_snapshot` does, which would wait on this thread until it is committed.
        let (lsn, frames): (_, Vec<_>) = {
            let mut snapshot = engine.snapshot();
            (snapshot.lsn(), std::iter::from_fn(|| snapshot.next_frame()).collect())
        };
        let failed = |error: SnapshotError| error.to_string();
        let mut writer = SnapshotWriter::create(running.log.storage().clone(), lsn).map_err(failed)?;
        for frame in frames {
            writer.write_frame(KEYSPACE, &frame).map_err(failed)?;
        }
        let pause = self.random(|rng| rng.u64(1..20));
        Simulated::sleep(Duration::from_millis(pause)).await;
        if self.faults.snapshot_at_appended {
            return writer.finish().map(|()| Some(lsn)).map_err(failed);
        }
        let began = Simulated::now();
        while running.log.committed() < lsn {
            if running.leading() != leading || Simulated::now() - began > PATIENCE || !running.disk.is_alive()
            {
                return Ok(None);
            }
            Simulated::sleep(LOOK_PAUSE).await;
        }
        self.note_log(running);
        match running.log.finish_snapshot(writer) {
            Ok(()) => Ok(Some(lsn)),
            // What it has was taken back, or may be.
            Err(SnapshotError::Log(_)) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Compares the memory of a member with that of others at the same record.
    pub(super) fn compare_digest(&self, node: u64, running: &Running) {
        let engine = lock(&running.memory).engine(running.leading());
        match engine {
            Ok(Some(engine)) if engine.applied() <= running.log.committed() => {
                self.history.note_digest(node, engine.applied(), engine.digest());
            }
            Ok(_) => {}
            Err(error) => self.history.fail(format!("memory of member {node} cannot follow: {error}")),
        }
    }

    /// Compares everything that a member has in memory and on its disk with what is committed. Everything
    /// in its log is.
    pub(super) fn compare_state(&self, node: u64, running: &Running) {
        self.compare_digest(node, running);
        if let Err(error) = self.try_compare_state(node, running) {
            self.history.fail(format!("the state of member {node} cannot be read: {error}"));
        }
    }

    fn try_compare_state(&self, node: u64, running: &Running) -> Result<(), String> {
        let committed = self.history.operations();
        let compare = |what: &str, engine: &Engine| {
            let lsn = engine.applied();
            if let Err(error) = compare(engine, lsn, &committed) {
                self.history.fail(format!("member {node}: {what} at {lsn}: {error}"));
            }
        };
        if let Some(engine) = lock(&running.memory).engine(running.leading())? {
            compare("memory", &engine);
        }
        let mut loaded = Memory::new(running.log.clone(), false);
        if let Some(engine) = loaded.engine(None)? {
            compare("memory that is loaded", &engine);
            self.history.note_digest(node, engine.applied(), engine.digest());
        }
        let snapshots = Snapshots::new(running.log.storage().clone());
        for lsn in snapshots.list().map_err(|error| error.to_string())? {
            // Those before the log are of no use.
            if lsn.next() >= running.log.floor() {
                let snapshot = snapshots.open(lsn).map_err(|error| error.to_string())?;
                compare("a snapshot", &load(&running.log, &snapshot)?);
            }
        }
        Ok(())
    }
}
