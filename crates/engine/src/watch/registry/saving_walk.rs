//! The walk that takes queries into a snapshot.

use crate::engine::Engine;
use std::sync::atomic::Ordering;
use tidemark_log::Lsn;

/// How many queries the walk looks at with the registry locked.
const STEP: usize = 256;

impl Engine {
    /// Begins to save queries as they are now, when the log ends at `cut`. All shards are locked.
    pub(crate) fn begin_saving_queries(&self, cut: Lsn) {
        let saving = &self.registry().saving;
        // Of a snapshot that was given up.
        saving.saved();
        saving.number.fetch_add(1, Ordering::AcqRel);
        saving.cut.store(cut.0, Ordering::Release);
    }

    /// A frame of some `bytes` with queries as they were at the cut, from behind `after` on, which moves; `None` when all have
    /// been saved. No locks are held.
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
            // Behind the look at the registry: what has left it meanwhile is here.
            let saved = saving.saved();
            saved.iter().for_each(|saved| saved.encode(&mut frame));
            if queries.is_empty() && saved.is_empty() {
                break;
            }
        }
        (!frame.is_empty()).then_some(frame)
    }

    /// Ends saving: nobody keeps what was any more.
    pub(crate) fn end_saving_queries(&self) {
        let saving = &self.registry().saving;
        saving.cut.store(0, Ordering::Release);
        saving.saved();
    }
}
