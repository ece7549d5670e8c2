//! The scrub: reads what the disk keeps, slowly and without end, so that damage is found while others still
//! have what it has destroyed.
//!
//! ```text
//! the log, up to what is committed ─► snapshots ─► their blocks ─► pause ─► the log …
//! ```
//!
//! Damage is looked at twice: files are removed, and a log is replaced, while they are read. A member of a
//! group then stops, and gets its data from the others, once these can do without it: what is damaged is
//! neither applied nor sent meanwhile. A node alone tells its operator.

use crate::durability::recover_error::{damage_of, damage_of_snapshot};
use crate::group::GroupNode;
use crate::observe::operator_line::say;
use crate::shared::Shared;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tidemark_log::{Log, ReplayError, SnapshotError, Snapshots};

/// Longest sleep before the thread looks whether the server stops.
const NAP: Duration = Duration::from_millis(100);
/// Pause before the first pass: what a start needs is read first.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Pause behind a pass, and while the setting is 0.
const PASS_PAUSE: Duration = Duration::from_secs(10);
/// Pause before damage is looked at again.
const RECHECK_PAUSE: Duration = Duration::from_secs(1);

/// Starts the thread. It ends when the server stops.
pub(crate) fn start(shared: &Arc<Shared>, node: Option<&Arc<GroupNode>>) -> io::Result<JoinHandle<()>> {
    let scrub = Scrub { shared: Arc::clone(shared), node: node.map(Arc::clone) };
    std::thread::Builder::new().name("tidemark-scrub".to_owned()).spawn(move || scrub.run())
}

struct Scrub {
    shared: Arc<Shared>,
    node: Option<Arc<GroupNode>>,
}

/// Why a pass ends early.
#[derive(Debug, PartialEq, Eq)]
enum PassEnd {
    /// The server stops.
    Stopped,
    /// What was read is not there any more, or cannot be read: the next pass sees what is there.
    Changed,
    /// The disk has damaged something.
    Damaged(String),
}

impl Scrub {
    fn run(&self) {
        let (mut told, mut waits_with, mut pause) = (String::new(), String::new(), FIRST_PAUSE);
        while self.rest(std::mem::replace(&mut pause, PASS_PAUSE)) {
            if self.rate() == 0 {
                continue;
            }
            let Err(PassEnd::Damaged(damage)) = self.pass(&|bytes| self.pace(bytes)) else { continue };
            if damage == told || !self.rest(RECHECK_PAUSE) {
                continue;
            }
            // No snapshot of another member takes the place of the log meanwhile.
            let loading = self.node.as_ref().map(|node| node.leadership().load());
            let again = self.pass(&|_| !self.shared.is_stopping());
            drop(loading);
            if again != Err(PassEnd::Damaged(damage.clone())) {
                continue;
            }
            if let Some(node) = &self.node
                && !node.can_be_missed(&self.shared.settings.current().requirepass)
            {
                if damage != waits_with {
                    say(&format!(
                        "error: the data of this member is damaged: {damage}. It is replaced when enough of the other \
                         members are well to go on without this one; until then it goes on with what is whole"
                    ));
                    waits_with = damage;
                }
                continue;
            }
            told.clone_from(&damage);
            match &self.node {
                None => say(&format!(
                    "error: the disk has damaged what it keeps: {damage}; memory has all of it: take a snapshot with \
                     SAVE, and check the disk"
                )),
                Some(node) => {
                    if node.request_replacement(&damage) {
                        self.shared.stop_gracefully();
                    }
                }
            }
        }
    }

    /// Bytes that are read in a second.
    fn rate(&self) -> u64 {
        self.shared.settings.current().scrub_rate
    }

    /// Sleeps; returns false if the server stops.
    fn rest(&self, time: Duration) -> bool {
        let mut left = time;
        while !self.shared.is_stopping() {
            if left.is_zero() {
                return true;
            }
            let nap = left.min(NAP);
            std::thread::sleep(nap);
            left -= nap;
        }
        false
    }

    /// Sleeps for as long as these bytes may take; returns false if the server stops.
    fn pace(&self, bytes: u64) -> bool {
        let rate = self.rate().max(1);
        self.rest(Duration::from_micros((bytes.saturating_mul(1_000_000) / rate).min(3_600_000_000)))
    }

    fn pass(&self, go_on: &dyn Fn(u64) -> bool) -> Result<(), PassEnd> {
        let log = self.shared.engine.log();
        read_log(log, go_on)?;
        read_snapshots(log, go_on)
    }
}

/// Reads all records that are committed now. `go_on` is asked behind each read, with its bytes.
fn read_log(log: &Log, go_on: &dyn Fn(u64) -> bool) -> Result<(), PassEnd> {
    let ended = |error: ReplayError| match error {
        ReplayError::Damaged(damage) => PassEnd::Damaged(damage_of(&damage)),
        _ => PassEnd::Changed,
    };
    let end = log.committed();
    let mut tail = log.tail(log.floor()).map_err(ended)?;
    while tail.position() <= end {
        let Some(batch) = tail.next_committed_batch().map_err(ended)? else { return Ok(()) };
        let bytes = batch.iter().map(|record| record.payload.len() as u64).sum();
        if !go_on(bytes) {
            return Err(PassEnd::Stopped);
        }
    }
    Ok(())
}

/// Reads all snapshots that are complete now, and then the blocks that they share.
fn read_snapshots(log: &Log, go_on: &dyn Fn(u64) -> bool) -> Result<(), PassEnd> {
    let snapshots = Snapshots::new(Arc::clone(log.storage()));
    let ended = |error: SnapshotError| match damage_of_snapshot(&error) {
        Some(damage) => PassEnd::Damaged(damage),
        None => PassEnd::Changed,
    };
    let (mut buffer, mut blocks) = (Vec::new(), std::collections::BTreeSet::new());
    for lsn in snapshots.list().map_err(ended)? {
        let snapshot = snapshots.open(lsn).map_err(ended)?;
        for frame in snapshot.frames() {
            snapshot.read_frame(frame, &mut buffer).map_err(ended)?;
            if !go_on(buffer.len() as u64) {
                return Err(PassEnd::Stopped);
            }
        }
        blocks.extend(snapshot.block_files().map_err(ended)?.iter().map(|file| file.number));
    }
    for number in blocks {
        let file = log.block_files().open(number).map_err(ended)?;
        file.verify().map_err(ended)?;
        if !go_on(file.bytes()) {
            return Err(PassEnd::Stopped);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_log::{Durability, MemoryStorage, Options, SnapshotWriter};

    /// A log with records in several segments, and a snapshot.
    fn filled() -> (MemoryStorage, Arc<Log>) {
        let storage = MemoryStorage::new();
        let options =
            Options { segment_bytes: 64 << 10, durability: Durability::Always, ..Options::default() };
        let (log, _) = Log::open(Arc::new(storage.clone()), options).expect("opens");
        for number in 0..200_u32 {
            log.append(u64::from(number), 1, |into| into.extend_from_slice(&[number as u8; 1000]))
                .expect("is accepted");
        }
        log.wait_durable(log.appended()).expect("is durable");
        let mut snapshot = SnapshotWriter::create(Arc::clone(log.storage()), log.durable()).expect("begins");
        snapshot.write_frame(7, &[5; 3000]).expect("is written");
        log.finish_snapshot(snapshot).expect("is complete");
        (storage, Arc::new(log))
    }

    fn pass(log: &Log) -> Result<u64, PassEnd> {
        let read = std::cell::Cell::new(0);
        let go_on = |bytes| {
            read.set(read.get() + bytes);
            true
        };
        read_log(log, &go_on)?;
        read_snapshots(log, &go_on)?;
        Ok(read.get())
    }

    #[test]
    fn all_that_is_kept_is_read() {
        let (_, log) = filled();
        assert_eq!(pass(&log), Ok(200 * 1000 + 3000));
    }

    #[test]
    fn a_flipped_bit_is_found_in_the_log_and_in_a_snapshot() {
        let (storage, log) = filled();
        let names = tidemark_log::Storage::list(&storage).expect("names");
        let has = |name: &&String| name.starts_with("segment-") || name.starts_with("snapshot-");
        let mut damaged = 0;
        for name in names.iter().filter(has) {
            let bytes = storage.read(name).expect("the file");
            // Behind the header, in what is written.
            let at = 6_000.min(bytes.len() / 2);
            if bytes[at..].iter().all(|byte| *byte == 0) {
                continue;
            }
            // In place: the log has its segments open.
            let file = tidemark_log::Storage::open(&storage, name).expect("the file");
            let write = |byte: u8| assert_eq!(file.write_at(&[byte], at as u64).expect("is written"), 1);
            write(bytes[at] ^ 4);
            let end = pass(&log);
            let Err(PassEnd::Damaged(words)) = end else { panic!("{name} passes for whole: {end:?}") };
            assert!(words.contains(name.as_str()) && words.contains(" at byte "), "{words}");
            write(bytes[at]);
            damaged += 1;
        }
        assert!(damaged >= 4, "{names:?}");
        assert!(pass(&log).is_ok());
    }

    #[test]
    fn a_pass_ends_when_the_server_stops() {
        let (_, log) = filled();
        assert_eq!(read_log(&log, &|_| false), Err(PassEnd::Stopped));
        assert_eq!(read_snapshots(&log, &|_| false), Err(PassEnd::Stopped));
    }
}
