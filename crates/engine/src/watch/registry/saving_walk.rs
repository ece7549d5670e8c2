//! The walk that saves queries into a snapshot.

use crate::engine::Engine;
use std::sync::atomic::Ordering;
use tidemark_log::Lsn;

/// Queries read per lock of the registry.
const STEP: usize = 256;

impl Engine {
    /// Starts to save queries as they are now; the log ends at `cut`. The caller has locked all
    /// shards.
    pub(crate) fn begin_saving_queries(&self, cut: Lsn) {
        let saving = &self.registry().saving;
        // Left over from a snapshot that was given up.
        saving.saved();
        saving.number.fetch_add(1, Ordering::AcqRel);
        saving.cut.store(cut.0, Ordering::Release);
    }

    /// Returns a frame of about `bytes` with queries as they were at the cut, from ids above
    /// `after`, which advances; `None` when all are saved. The caller holds no locks.
    pub(crate) fn save_queries(&self, after: &mut Lsn, bytes: usize) -> Option<Vec<u8>> {
        let saving = &self.registry().saving;
        let cut = Lsn(saving.cut.load(Ordering::Acquire));
        let mut frame = Vec::new();
        while frame.len() < bytes {
            let queries = self.registry().lock().range(*after, cut, STEP);
            for query in &queries {
                *after = query.id;
                if let Some(saved) = saving.save(query, &query.lock()) {
                    saved.encode(&mut frame);
                }
            }
            // After the registry is read: a query removed meanwhile is among the saved.
            let saved = saving.saved();
            saved.iter().for_each(|saved| saved.encode(&mut frame));
            if queries.is_empty() && saved.is_empty() {
                break;
            }
        }
        (!frame.is_empty()).then_some(frame)
    }

    /// Ends the saving: writers no longer save queries.
    pub(crate) fn end_saving_queries(&self) {
        let saving = &self.registry().saving;
        saving.cut.store(0, Ordering::Release);
        saving.saved();
    }
}
