//! A transfer as its sender sees it: which request is next, and what an answer means.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use tidemark_log::Storage;
use tidemark_log::storage::{StorageFile, read_full};

use super::file_list::{FILES_MAX, FileEntry, FileList, FileName, META_BYTES_MAX, digest_of};
use super::message::{Answer, CHUNK_BYTES_MAX, Request};

/// How often a transfer is offered again while no byte arrives.
const OFFERS_WITHOUT_PROGRESS: u32 = 5;

/// Why files cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The receiver's disk is full.
    #[error("the receiver has no room for the snapshot: {0}")]
    Full(String),
    /// The receiver does not take the files.
    #[error("the receiver refuses the snapshot: {0}")]
    Refused(String),
    /// A file cannot be read.
    #[error("reading {name} for a transfer: {error}")]
    Read {
        /// The file.
        name: String,
        /// What is wrong.
        error: io::Error,
    },
    /// The files are more than a transfer can have.
    #[error("{0}")]
    Limits(String),
    /// The receiver gives answers that fit to no request, or no longer makes progress.
    #[error("the receiver does not follow the protocol: {0}")]
    Protocol(&'static str),
    /// No connection lasts long enough for an answer.
    #[error("the receiver has not answered in {attempts} attempts")]
    Unreachable {
        /// Attempts since the last answer.
        attempts: u32,
    },
}

/// The files of a snapshot that are to be sent, opened: they can be removed meanwhile.
#[derive(Debug)]
pub struct OutgoingFiles {
    list: FileList,
    files: Vec<Box<dyn StorageFile>>,
}

impl OutgoingFiles {
    /// Opens the files and computes their digests: reads all of them. `meta` is what the receiver needs
    /// to know of the snapshot.
    pub fn open(storage: &Arc<dyn Storage>, names: &[FileName], meta: Vec<u8>) -> Result<Self, SendError> {
        if names.len() > FILES_MAX || meta.len() > META_BYTES_MAX {
            return Err(SendError::Limits(format!(
                "a snapshot of {} files with a description of {} bytes cannot be sent: the limits are {FILES_MAX} \
                 files and {META_BYTES_MAX} bytes",
                names.len(),
                meta.len()
            )));
        }
        let mut list = FileList { meta, files: Vec::new() };
        let mut files = Vec::new();
        for name in names {
            let failed = |error| SendError::Read { name: storage.path(name.as_str()), error };
            let file = storage.open(name.as_str()).map_err(failed)?;
            let bytes = file.len().map_err(failed)?;
            let digest = digest_of(&*file, bytes).map_err(failed)?;
            let digest = digest.ok_or_else(|| failed(io::Error::other("its size changes")))?;
            list.files.push(FileEntry { name: name.clone(), bytes, digest });
            files.push(file);
        }
        Ok(Self { list, files })
    }

    /// Returns the size of all files in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.list.total_bytes()
    }
}

/// A transfer to one receiver. It does no input but reading the files.
#[derive(Debug)]
pub struct Outgoing {
    files: OutgoingFiles,
    transfer: u128,
    chunk_bytes: usize,
    phase: Phase,
    /// What the receiver has of each file, with the chunks that are under way.
    sent: Vec<u64>,
    /// What was asked and is not answered.
    asked: VecDeque<Asked>,
    offers_without_progress: u32,
    chunk_bytes_sent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The next request is an offer.
    Offer,
    /// The answer to an offer, or those behind an unexpected one, are waited for.
    Wait,
    /// Chunks are sent.
    Chunks,
    /// The finish is sent.
    Finish,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Offer,
    /// A chunk up to this offset of a file.
    Chunk {
        end: u64,
    },
    Finish,
}

impl Outgoing {
    /// Begins a transfer in chunks of `chunk_bytes`, at most 1 MiB.
    pub fn new(files: OutgoingFiles, chunk_bytes: usize) -> Self {
        let transfer = files.list.transfer();
        let sent = vec![0; files.list.files.len()];
        Self {
            files,
            transfer,
            chunk_bytes: chunk_bytes.clamp(1, CHUNK_BYTES_MAX),
            phase: Phase::Offer,
            sent,
            asked: VecDeque::new(),
            offers_without_progress: 0,
            chunk_bytes_sent: 0,
        }
    }

    /// Returns whether the receiver has all files.
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Returns how many bytes of files were sent so far, repetitions among them.
    pub fn chunk_bytes_sent(&self) -> u64 {
        self.chunk_bytes_sent
    }

    /// Returns the next request, or `None` until an answer has come.
    pub fn next_request(&mut self) -> Result<Option<Vec<u8>>, SendError> {
        match self.phase {
            Phase::Wait | Phase::Finish | Phase::Done => Ok(None),
            Phase::Offer => {
                if self.offers_without_progress >= OFFERS_WITHOUT_PROGRESS {
                    return Err(SendError::Protocol("it takes offers again and again, and no bytes"));
                }
                self.offers_without_progress += 1;
                self.phase = Phase::Wait;
                self.asked.push_back(Asked::Offer);
                Ok(Some(Request::Offer(self.files.list.clone()).encode()))
            }
            Phase::Chunks => {
                let entries = &self.files.list.files;
                let Some(index) = (0..entries.len()).find(|index| self.sent[*index] < entries[*index].bytes)
                else {
                    self.phase = Phase::Finish;
                    self.asked.push_back(Asked::Finish);
                    return Ok(Some(Request::Finish { transfer: self.transfer }.encode()));
                };
                let (entry, offset) = (&entries[index], self.sent[index]);
                let length = (entry.bytes - offset).min(self.chunk_bytes as u64) as usize;
                let mut bytes = vec![0; length];
                let failed = |error| SendError::Read { name: entry.name.to_string(), error };
                let read = read_full(&*self.files.files[index], &mut bytes, offset).map_err(failed)?;
                if read < length {
                    return Err(failed(io::Error::other("the file has become shorter")));
                }
                self.sent[index] += length as u64;
                self.chunk_bytes_sent += length as u64;
                self.asked.push_back(Asked::Chunk { end: self.sent[index] });
                let (transfer, file) = (self.transfer, index as u32);
                Ok(Some(Request::Chunk { transfer, file, offset, bytes: &bytes }.encode()))
            }
        }
    }

    /// Takes the answer to the oldest request that has none.
    pub fn take_answer(&mut self, answer: &[u8]) -> Result<(), SendError> {
        let answer = Answer::decode(answer).ok_or(SendError::Protocol("an answer is not well formed"))?;
        let asked = self.asked.pop_front().ok_or(SendError::Protocol("an answer came without a request"))?;
        match (asked, answer) {
            (_, Answer::Refused { is_full: true, reason }) => return Err(SendError::Full(reason)),
            (_, Answer::Refused { is_full: false, reason }) => return Err(SendError::Refused(reason)),
            (Asked::Offer, Answer::Held(held)) => {
                let entries = &self.files.list.files;
                let is_possible = held.len() == entries.len()
                    && held.iter().zip(entries).all(|(held, entry)| *held <= entry.bytes);
                if !is_possible {
                    return Err(SendError::Protocol("it has more bytes than the files"));
                }
                self.sent = held;
                self.phase = Phase::Chunks;
            }
            (Asked::Chunk { end }, Answer::Took { held }) if held == end => self.offers_without_progress = 0,
            (Asked::Finish, Answer::Done) => self.phase = Phase::Done,
            // The receiver has restarted, or a part has arrived damaged: what it has is asked again, when
            // the answers to what is under way have come.
            (Asked::Chunk { .. }, Answer::Took { .. } | Answer::Unknown)
            | (Asked::Finish, Answer::Unknown) => {
                self.phase = Phase::Wait;
            }
            _ => return Err(SendError::Protocol("an answer fits to no request")),
        }
        if self.phase == Phase::Wait && self.asked.is_empty() {
            self.phase = Phase::Offer;
        }
        Ok(())
    }

    /// Forgets the requests without an answer: their connection has failed.
    pub fn connection_failed(&mut self) {
        self.asked.clear();
        if self.phase != Phase::Done {
            self.phase = Phase::Offer;
            // The caller counts failures of connections.
            self.offers_without_progress = 0;
        }
    }
}
