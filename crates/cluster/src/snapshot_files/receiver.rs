//! Takes the files of a snapshot into a directory.
//!
//! ```text
//! offer ─► chunks into parts, each verified and synced when it is whole ─► finish ─► install: names
//! ```
//!
//! What has arrived survives a broken connection and a restart: the list of files is in the directory
//! while a transfer lasts, and the size of a part says how much of it is there. Files that the directory
//! has already, with the same content, are not sent. The parts get their names together, when the caller
//! installs them: a crash within that is completed at the next start.

use std::io;
use std::sync::Arc;

use tidemark_log::Storage;
use tidemark_log::storage::{StorageFile, is_shortage, write_all};

use super::file_list::{FileEntry, FileList, FileName, digest_of};
use super::list_file::{self, Stage};
use super::message::{Answer, Request};

/// Suffix of a file that is not whole, or not installed.
const PART_SUFFIX: &str = ".incoming";

/// Bytes after which a part is synced: the disk is never given much more at once.
const SYNC_BYTES: u64 = 16 << 20;

/// How often a file may arrive with another content than announced.
const MISMATCHES_MAX: u32 = 2;

/// Limits of what a receiver takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverLimits {
    /// Most bytes of all files of a snapshot.
    pub bytes_max: u64,
    /// Bytes that stay free on the disk.
    pub reserve_bytes: u64,
}

/// Takes the files of one snapshot at a time. Calls read and write files: none belongs on the thread of
/// the connections.
#[derive(Debug)]
pub struct SnapshotReceiver {
    storage: Arc<dyn Storage>,
    limits: ReceiverLimits,
    /// The list in the directory.
    stored: Option<(Stage, FileList)>,
    /// The transfer that was offered since the start.
    incoming: Option<Incoming>,
    /// Why the last request was refused.
    refusal: Option<String>,
}

/// A transfer under way.
#[derive(Debug)]
struct Incoming {
    transfer: u128,
    files: Vec<IncomingFile>,
}

#[derive(Debug)]
struct IncomingFile {
    state: FileState,
    mismatches: u32,
}

#[derive(Debug)]
enum FileState {
    /// The directory has it under its name.
    Present,
    /// It has begun to arrive.
    Part { file: Box<dyn StorageFile>, held: u64, synced: u64 },
    /// It has arrived, and is verified and durable, but has no name yet.
    Whole,
}

/// What a receiver has installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// What the sender said of the snapshot.
    pub meta: Vec<u8>,
    /// The files, in the order in which they got their names.
    pub files: Vec<FileName>,
}

/// Why a transfer ended.
struct Refusal {
    is_full: bool,
    reason: String,
}

impl SnapshotReceiver {
    /// Takes up what an earlier run has left in the directory: completes an installation that was
    /// interrupted, and removes parts of no transfer.
    pub fn open(storage: Arc<dyn Storage>, limits: ReceiverLimits) -> io::Result<Self> {
        let stored = list_file::read(&*storage)?;
        let mut opened = Self { storage, limits, stored, incoming: None, refusal: None };
        match &opened.stored {
            Some((Stage::Installing, _)) => drop(opened.install()?),
            Some(_) => {}
            None => opened.remove_parts(&[])?,
        }
        Ok(opened)
    }

    /// Answers a request of the snapshot lane.
    pub fn answer(&mut self, request: &[u8]) -> Vec<u8> {
        let answer = match Request::decode(request) {
            Ok(Request::Offer(list)) => self.take_offer(list),
            Ok(Request::Chunk { transfer, file, offset, bytes }) => {
                self.take_chunk(transfer, file as usize, offset, bytes)
            }
            Ok(Request::Finish { transfer }) => self.finish(transfer),
            Err(reason) => Err(Refusal { is_full: false, reason }),
        };
        self.refusal = answer.as_ref().err().map(|refusal| refusal.reason.clone());
        let refused = |Refusal { is_full, reason }| Answer::Refused { is_full, reason };
        answer.unwrap_or_else(refused).encode()
    }

    /// Returns why the last request was refused; `None` if it was not.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Returns what the sender said of a snapshot whose files are all there, until it is installed.
    pub fn received(&self) -> Option<&[u8]> {
        match &self.stored {
            Some((Stage::Received, list)) => Some(&list.meta),
            _ => None,
        }
    }

    /// Returns how many bytes of the transfer under way are there, and how many it has.
    pub fn progress(&self) -> Option<(u64, u64)> {
        let (incoming, (_, list)) = (self.incoming.as_ref()?, self.stored.as_ref()?);
        let held = incoming.files.iter().zip(&list.files).map(|(file, entry)| file.held(entry)).sum();
        Some((held, list.total_bytes()))
    }

    /// Gives the files of a received snapshot their names, replacing files that have them with another
    /// content, and makes that durable. What the snapshot refers to gets its name first.
    ///
    /// # Errors
    /// If no snapshot is received, and if a file that was there is gone: then nothing has changed, and
    /// the transfer is offered again. After another error a start completes the installation.
    pub fn install(&mut self) -> io::Result<Installed> {
        let installed = self.give_names()?;
        self.end_installation()?;
        Ok(installed)
    }

    /// Does the first part of [`install`](Self::install): the files have their names, durably, and until
    /// [`end_installation`](Self::end_installation) every start finds an
    /// [`InterruptedInstallation`](super::InterruptedInstallation).
    ///
    /// # Errors
    /// As those of `install`.
    pub fn give_names(&mut self) -> io::Result<Installed> {
        let Some((stage @ (Stage::Received | Stage::Installing), list)) = self.stored.clone() else {
            return Err(io::Error::other("no snapshot is received"));
        };
        let names = self.storage.list()?;
        let has = |name: &str| names.iter().any(|found| found == name);
        let missing = list.files.iter().find(|file| !has(&part_name(&file.name)) && !has(file.name.as_str()));
        if let Some(file) = missing {
            self.abandon()?;
            return Err(io::Error::other(format!("the file {} was there and is gone", file.name)));
        }
        if stage == Stage::Received {
            self.store(Stage::Installing, list.clone())?;
        }
        let mut files: Vec<FileName> = list.files.iter().map(|file| file.name.clone()).collect();
        files.sort_by_key(|name| (name.rank(), name.clone()));
        rename_parts(&*self.storage, &files, &names)?;
        Ok(Installed { meta: list.meta, files })
    }

    /// Ends an installation whose files have their names.
    pub fn end_installation(&mut self) -> io::Result<()> {
        list_file::remove(&*self.storage)?;
        (self.stored, self.incoming) = (None, None);
        Ok(())
    }

    /// Returns the names of the files of the transfer that is there.
    pub fn names(&self) -> Vec<FileName> {
        let files = self.stored.iter().flat_map(|(_, list)| &list.files);
        files.map(|file| file.name.clone()).collect()
    }

    /// Removes a transfer with all that has arrived of it, if one is there.
    pub fn abandon(&mut self) -> io::Result<()> {
        (self.stored, self.incoming) = (None, None);
        // The list last: without it the parts are removed at the next start.
        self.remove_parts(&[])?;
        list_file::remove(&*self.storage)
    }

    fn take_offer(&mut self, list: FileList) -> Result<Answer, Refusal> {
        let transfer = list.transfer();
        if let Some((Stage::Installing, _)) = &self.stored {
            let reason = "an installation has failed; restart the member to complete it".to_owned();
            return Err(Refusal { is_full: false, reason });
        }
        let is_known = self.incoming.as_ref().is_some_and(|incoming| incoming.transfer == transfer);
        if !is_known {
            let total = list.total_bytes();
            if total > self.limits.bytes_max {
                let limit = self.limits.bytes_max;
                let reason = format!("a snapshot of {total} bytes is above the limit of {limit} bytes");
                return Err(Refusal { is_full: false, reason });
            }
            let begun = self.begin(transfer, list);
            self.or_abandon(begun)?;
        }
        Ok(Answer::Held(self.held()))
    }

    /// Begins a transfer, with what is there of its files.
    fn begin(&mut self, transfer: u128, list: FileList) -> Result<(), Refusal> {
        self.incoming = None;
        let kept: Vec<FileName> = match &self.stored {
            Some((_, earlier)) => {
                let kept = list.files.iter().filter(|file| earlier.files.contains(file));
                kept.map(|file| file.name.clone()).collect()
            }
            None => Vec::new(),
        };
        let is_same = self.stored.as_ref().is_some_and(|(_, earlier)| *earlier == list);
        self.remove_parts(&kept).map_err(|error| refused("removing an earlier transfer", &error))?;
        let mut files = Vec::new();
        let mut missing_bytes = 0;
        for entry in &list.files {
            let state = self.find(entry).map_err(|error| refused("looking for what is there", &error))?;
            let file = IncomingFile { state: state.unwrap_or(FileState::Present), mismatches: 0 };
            missing_bytes += entry.bytes - file.held(entry);
            files.push(file);
        }
        let free = self.storage.free_bytes().map_err(|error| refused("measuring the disk", &error))?;
        if let Some(free) = free
            && free < missing_bytes.saturating_add(self.limits.reserve_bytes)
        {
            let reserve = self.limits.reserve_bytes;
            let reason = format!(
                "the disk has {free} bytes free; the snapshot needs {missing_bytes} and {reserve} stay free"
            );
            return Err(Refusal { is_full: true, reason });
        }
        if !is_same {
            self.store(Stage::Receiving, list).map_err(|error| refused("storing the list", &error))?;
        }
        self.incoming = Some(Incoming { transfer, files });
        for index in 0..self.held().len() {
            self.complete(index)?;
        }
        Ok(())
    }

    /// Returns what the directory has of a file: `None` if it has the whole file under its name.
    fn find(&self, entry: &FileEntry) -> io::Result<Option<FileState>> {
        match self.storage.open(entry.name.as_str()) {
            Ok(file) => {
                if digest_of(&*file, entry.bytes)? == Some(entry.digest) {
                    return Ok(None);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let part = part_name(&entry.name);
        let file = match self.storage.open(&part) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.storage.create(&part)?,
            Err(error) => return Err(error),
        };
        let mut held = file.len()?;
        if held > entry.bytes {
            file.set_len(0)?;
            held = 0;
        }
        Ok(Some(FileState::Part { file, held, synced: 0 }))
    }

    fn take_chunk(
        &mut self,
        transfer: u128,
        index: usize,
        offset: u64,
        bytes: &[u8],
    ) -> Result<Answer, Refusal> {
        let Some((incoming, entry)) = self.known(transfer, index)? else { return Ok(Answer::Unknown) };
        let FileState::Part { file, held, synced } = &mut incoming.files[index].state else {
            return Ok(Answer::Took { held: entry.bytes });
        };
        if offset != *held {
            return Ok(Answer::Took { held: *held });
        }
        if bytes.is_empty() || bytes.len() as u64 > entry.bytes - *held {
            let reason = format!(
                "a chunk of {} bytes at {offset} does not fit into {} of {} bytes",
                bytes.len(),
                entry.name,
                entry.bytes
            );
            return Err(Refusal { is_full: false, reason });
        }
        let written = write_all(&**file, bytes, offset).and_then(|()| {
            *held += bytes.len() as u64;
            if *held - *synced >= SYNC_BYTES {
                file.sync_data()?;
                *synced = *held;
            }
            Ok(())
        });
        let written = written.map_err(|error| refused(&format!("writing {}", entry.name), &error));
        let taken = written.and_then(|()| self.complete(index));
        self.or_abandon(taken)?;
        Ok(Answer::Took { held: self.held()[index] })
    }

    /// Verifies and syncs a part that has all its bytes.
    fn complete(&mut self, index: usize) -> Result<(), Refusal> {
        let (Some(incoming), Some((_, list))) = (&mut self.incoming, &self.stored) else { return Ok(()) };
        let (incoming, entry) = (&mut incoming.files[index], &list.files[index]);
        let FileState::Part { file, held, synced } = &mut incoming.state else { return Ok(()) };
        if *held < entry.bytes {
            return Ok(());
        }
        let doing = |doing: &str| format!("{doing} {}", entry.name);
        file.sync_data().map_err(|error| refused(&doing("syncing"), &error))?;
        let found =
            digest_of(&**file, entry.bytes).map_err(|error| refused(&doing("reading back"), &error))?;
        if found == Some(entry.digest) {
            incoming.state = FileState::Whole;
            return Ok(());
        }
        incoming.mismatches += 1;
        if incoming.mismatches > MISMATCHES_MAX {
            let reason = format!(
                "the file {} has arrived {} times with another content than announced",
                entry.name, incoming.mismatches
            );
            return Err(Refusal { is_full: false, reason });
        }
        file.set_len(0).map_err(|error| refused(&doing("emptying"), &error))?;
        (*held, *synced) = (0, 0);
        Ok(())
    }

    fn finish(&mut self, transfer: u128) -> Result<Answer, Refusal> {
        let Some((incoming, _)) = self.known(transfer, 0)? else { return Ok(Answer::Unknown) };
        if incoming.files.iter().any(|file| matches!(file.state, FileState::Part { .. })) {
            return Ok(Answer::Unknown);
        }
        let Some((stage, list)) = self.stored.clone() else { return Ok(Answer::Unknown) };
        // A file that the directory had may have been removed meanwhile.
        let names = self.storage.list().map_err(|error| refused("listing the files", &error))?;
        let is_there = |file: &FileEntry| {
            names.iter().any(|name| *name == part_name(&file.name) || name == file.name.as_str())
        };
        if !list.files.iter().all(is_there) {
            self.incoming = None;
            return Ok(Answer::Unknown);
        }
        if stage == Stage::Receiving {
            // Storing the list makes the names of the parts durable too.
            let stored = self.store(Stage::Received, list);
            let stored = stored.map_err(|error| refused("storing the list", &error));
            self.or_abandon(stored)?;
        }
        Ok(Answer::Done)
    }

    /// Returns the transfer and one of its files, or `None` if this is not the one under way.
    fn known(&mut self, transfer: u128, index: usize) -> Result<Option<(&mut Incoming, FileEntry)>, Refusal> {
        let incoming = self.incoming.as_mut().filter(|incoming| incoming.transfer == transfer);
        let (Some(incoming), Some((_, list))) = (incoming, &self.stored) else { return Ok(None) };
        match list.files.get(index) {
            Some(entry) => Ok(Some((incoming, entry.clone()))),
            None => {
                let reason =
                    format!("there is no file {index} among the {} of the snapshot", list.files.len());
                Err(Refusal { is_full: false, reason })
            }
        }
    }

    fn held(&self) -> Vec<u64> {
        let (Some(incoming), Some((_, list))) = (&self.incoming, &self.stored) else { return Vec::new() };
        incoming.files.iter().zip(&list.files).map(|(file, entry)| file.held(entry)).collect()
    }

    /// Removes all of the transfer if it has failed. What cannot be removed now is removed at a start.
    fn or_abandon<T>(&mut self, result: Result<T, Refusal>) -> Result<T, Refusal> {
        if result.is_err() {
            let _ = self.abandon();
        }
        result
    }

    fn store(&mut self, stage: Stage, list: FileList) -> io::Result<()> {
        list_file::write(&*self.storage, stage, &list)?;
        self.stored = Some((stage, list));
        Ok(())
    }

    /// Removes all parts but those of these files.
    fn remove_parts(&self, kept: &[FileName]) -> io::Result<()> {
        for name in self.storage.list()? {
            let Some(Ok(file)) = name.strip_suffix(PART_SUFFIX).map(FileName::new) else { continue };
            if !kept.contains(&file) {
                self.storage.remove(&name)?;
            }
        }
        Ok(())
    }
}

impl IncomingFile {
    fn held(&self, entry: &FileEntry) -> u64 {
        match &self.state {
            FileState::Part { held, .. } => *held,
            FileState::Present | FileState::Whole => entry.bytes,
        }
    }
}

/// Gives parts that are there their names, in this order, and makes that durable.
pub(super) fn rename_parts(storage: &dyn Storage, files: &[FileName], there: &[String]) -> io::Result<()> {
    for name in files {
        let part = part_name(name);
        if there.contains(&part) {
            storage.rename(&part, name.as_str())?;
        }
    }
    storage.sync_dir()
}

fn part_name(name: &FileName) -> String {
    format!("{name}{PART_SUFFIX}")
}

fn refused(doing: &str, error: &io::Error) -> Refusal {
    Refusal { is_full: is_shortage(error), reason: format!("{doing} failed: {error}") }
}
