//! Where the log of a member begins: entries that are released, and a log that a snapshot replaces.

use std::io;
use std::sync::{Arc, PoisonError};

use tidemark_log::Member as LogMember;
use tidemark_log::{EntryEnd, EntryId, Storage};
use tokio::sync::oneshot;

use super::backlog::Backlog;
use super::{LogDriver, ReadJob, closed};
use crate::beginning::Beginning;

impl LogDriver {
    /// Returns where the log may begin; `None` at its first entry.
    pub(crate) fn beginning(&self) -> Option<Beginning> {
        self.state().beginning.clone()
    }

    /// Returns the directory of the log.
    pub(crate) fn storage(&self) -> &Arc<dyn Storage> {
        self.0.log.storage()
    }

    /// Releases the entries up to a newer beginning, which is durable before any of them is removed. Runs
    /// on the reader thread.
    pub(crate) async fn release(&self, beginning: Beginning) -> io::Result<()> {
        let driver = self.clone();
        self.inspect(move |member| {
            let _changing = driver.0.changing_beginning.lock().unwrap_or_else(PoisonError::into_inner);
            let end = beginning.end;
            if driver.beginning().is_some_and(|newer| newer.end.id.index >= end.id.index) {
                return Ok(());
            }
            beginning.write(&**driver.storage())?;
            driver.state().beginning = Some(beginning);
            member.release(end.last.next());
            Ok(())
        })
        .await?
    }

    /// Replaces the log by its beginning behind a snapshot, whose files get their names by `give_names`,
    /// and then does `end`. Blocks; runs on the writer thread. Nothing is written meanwhile.
    ///
    /// # Errors
    /// A part of it failed. A start completes it, if names were given.
    pub(crate) fn install(
        &self,
        beginning: Beginning,
        give_names: impl FnOnce() -> io::Result<()> + Send + 'static,
        end: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let (done, installed) = std::sync::mpsc::channel();
        let driver = self.clone();
        self.run(move |member| {
            let result = driver.install_here(member, beginning, give_names).and_then(|()| end());
            drop(done.send(result));
        });
        #[cfg(test)]
        self.0.work_without_threads();
        installed.recv().map_err(|_| closed())?
    }

    fn install_here(
        &self,
        member: &LogMember,
        beginning: Beginning,
        give_names: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let end = beginning.end;
        let _changing = self.0.changing_beginning.lock().unwrap_or_else(PoisonError::into_inner);
        // None is removed before the snapshot that lists it has its name.
        self.0.log.block_files().while_kept(give_names)?;
        member.restart_behind(end).map_err(io::Error::other)?;
        beginning.write(&**self.storage())?;
        let mut state = self.state();
        // What the consensus appended is behind this job.
        state.unwritten.clear();
        (state.last, state.written) = (end, end);
        state.backlog = Backlog::default();
        state.committed = state.committed.max(end.last);
        state.beginning = Some(beginning);
        drop(state);
        self.0.settled.notify_one();
        Ok(())
    }

    /// Keeps the block files of these names, although no snapshot lists them yet, and none of before.
    pub(crate) fn keep_block_files<'a>(&self, names: impl Iterator<Item = &'a str>) {
        self.0.log.block_files().keep(names);
    }

    /// Runs `look` on the reader thread, which may wait for the disk.
    pub(crate) async fn inspect<R: Send + 'static>(
        &self,
        look: impl FnOnce(&LogMember) -> R + Send + 'static,
    ) -> io::Result<R> {
        let (done, found) = oneshot::channel();
        self.0.reads.push(ReadJob::Run(Box::new(move |member| drop(done.send(look(member))))));
        found.await.map_err(|_| closed())
    }
}

/// Checks that a log has all entries from its beginning on.
pub(super) fn check(beginning: Option<&Beginning>, first: u64, last: EntryEnd) -> io::Result<()> {
    let end = beginning.map_or(EntryId::default(), |beginning| beginning.end.id);
    if first <= end.index + 1 && last.id.index >= end.index {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "the log has the entries from {first} to {}, and a snapshot covers those up to {}: some are lost. Remove the \
         member from its group and let it join with an empty directory",
        last.id.index, end.index
    )))
}
