//! Beginning a segment: what makes a prepared file the log's last segment.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::buffer::Cut;
use crate::error::Failure;
use crate::ready::Surplus;
use crate::segment::{Segment, segment_name};
use crate::storage::write_all;

use super::Committer;

/// Time behind the beginning of a member's segment in which nothing is done that delays its syncs: a new
/// term begins with it, and no client gets an answer before that is durable at most members.
const CALM_DELAY: Duration = Duration::from_millis(200);

impl Committer {
    /// Makes a prepared file the log's last segment, durably, before any record is written to it.
    pub(crate) fn activate(&mut self, cut: Cut) -> Result<(), Failure> {
        let Cut { at, ready, mut header } = cut;
        if let (Some(entry), Some(opening)) = (&mut header.entry, self.opening) {
            *entry = if at == 0 { self.entry } else { opening.end() };
        }
        let storage = &self.shared.storage;
        let name = segment_name(header.first_lsn);
        let block = self.shared.codec.encode_header(&header);
        write_all(&*ready.file, &block, 0)
            .and_then(|()| ready.file.sync_data())
            .and_then(|()| storage.rename(&ready.name, &name))
            .and_then(|()| storage.sync_dir())
            .map_err(|error| Failure::new(format!("starting {}", storage.path(&name)), error))?;
        let segment = Arc::new(Segment {
            name,
            header,
            format: self.shared.options.format,
            data_offset: block.len() as u64,
            file: ready.file,
        });
        let surplus = self.shorten()?;
        self.is_cut = false;
        self.offset = segment.data_offset;
        let replaced = self.shared.table().insert(segment.clone());
        if replaced.is_some() {
            // Readers that stand in the empty one go to this one, before anything in it is committed.
            self.shared.cuts.fetch_add(1, Ordering::AcqRel);
        }
        // With the same first record it has the same name, and is replaced already.
        if let Some(empty) = replaced.filter(|empty| empty.name != segment.name) {
            let removed = storage.remove(&empty.name).and_then(|()| storage.sync_dir());
            if self.shared.has_entries {
                // Of two segments that begin behind the same record, only one may have records: the
                // group may have cut those of this one.
                let what = || format!("removing {}", storage.path(&empty.name));
                removed.map_err(|error| Failure::new(what(), error))?;
            }
            // Otherwise best effort: a leftover is removed at the next open.
        }
        self.segment = Some(segment);
        let mut state = self.shared.lock();
        state.retention_due = true;
        state.sealed = header.follows;
        if self.shared.has_entries {
            state.calm_at = Some(self.shared.options.clock.now() + CALM_DELAY);
            state.surplus.extend(surplus);
        }
        drop(state);
        self.shared.wakers.housekeeping.notify_one();
        self.shared.wakers.advanced.notify_all();
        Ok(())
    }

    /// Shortens the last segment, which gets a successor, to its records, if a group has taken some of it
    /// back: without the successor they would be read again. Returns what else of it is unused: to free
    /// that takes long, and the group waits for the successor.
    fn shorten(&self) -> Result<Option<Surplus>, Failure> {
        let Some(segment) = self.segment.as_ref().filter(|_| self.shared.has_entries) else {
            return Ok(None);
        };
        let failed = |error| self.failure("shortening", segment, error);
        if self.is_cut {
            segment.file.set_len(self.offset).and_then(|()| segment.file.sync_data()).map_err(failed)?;
        }
        Ok(Some(Surplus { segment: Arc::downgrade(segment), end: self.offset }))
    }
}
