//! The durable vote of a member.

use std::io;
use std::path::Path;

use crate::slot_file::{CONTENT_BYTES_MAX, SlotError, SlotFile, SlotName};

const NAME: SlotName = SlotName { name: "vote", magic: *b"VOTE" };

/// Longest vote. Bytes.
pub const VOTE_BYTES_MAX: usize = CONTENT_BYTES_MAX;

/// The durable vote of a member. It survives torn writes and damage to one of its two slots.
#[derive(Debug)]
pub struct VoteFile {
    file: SlotFile,
}

impl VoteFile {
    /// Opens the file in this directory and returns the newest vote, which is durable. Creates the file,
    /// durably, if there is none.
    ///
    /// # Errors
    /// If the file cannot be read or created, and if it is damaged: then the member may have voted and
    /// must not vote again.
    pub fn open(directory: &Path) -> io::Result<(Self, Option<Vec<u8>>)> {
        match SlotFile::open(directory, NAME) {
            Ok(Some((file, vote))) => Ok((Self { file }, vote)),
            Ok(None) => Ok((Self { file: SlotFile::create(directory, NAME)? }, None)),
            Err(SlotError::Io(error)) => Err(error),
            Err(SlotError::Damaged { path, what }) => {
                let error = format!(
                    "the vote file {} is damaged: {what}. The member may have voted and must not vote again. \
                     Remove it from the group and let it join with an empty directory",
                    path.display()
                );
                Err(io::Error::new(io::ErrorKind::InvalidData, error))
            }
        }
    }

    /// Makes a vote durable. Costs two writes of 4 KiB, each with a sync. After an error it is unknown
    /// whether this vote or the one before is there, and every later save fails.
    ///
    /// # Panics
    /// If the vote is longer than [`VOTE_BYTES_MAX`].
    pub fn save(&mut self, vote: &[u8]) -> io::Result<()> {
        self.file.save(vote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vote_is_there_after_each_start() {
        let directory = tempfile::tempdir().expect("a directory");
        let (_, vote) = VoteFile::open(directory.path()).expect("a new file");
        assert_eq!(vote, None);
        for saved in [&b"term 4 for node 2"[..], b"", &[9; VOTE_BYTES_MAX]] {
            let (mut file, _) = VoteFile::open(directory.path()).expect("the file");
            file.save(saved).expect("saved");
            let (_, vote) = VoteFile::open(directory.path()).expect("the file");
            assert_eq!(vote.as_deref(), Some(saved));
        }
    }

    #[test]
    fn a_damaged_file_is_never_no_vote() {
        let directory = tempfile::tempdir().expect("a directory");
        for damaged in [&[][..], &[0; 8192], b"anything"] {
            std::fs::write(directory.path().join("vote"), damaged).expect("a file");
            let error = VoteFile::open(directory.path()).expect_err("a damaged file").to_string();
            assert!(error.contains("must not vote again. Remove it from the group"), "{error}");
        }
    }
}
