//! Where the log of a member may begin, and who the members were there: what a start needs to know of
//! entries that are gone.
//!
//! ```text
//! file      copy, copy          each: crc u32 (of the rest), length u32, beginning
//! beginning version u8 │ entry: index u64, term u64, last record u64 │ members: index u64, term u64, list
//! ```
//!
//! The file is replaced before entries are released, and before a log is replaced by a snapshot of
//! another member. The same bytes describe such a snapshot on its way.

use std::io;
use std::sync::Arc;

use tidemark_log::storage::{read_full, write_all};
use tidemark_log::{EntryEnd, EntryId, Log, Lsn, Member as LogMember, Storage};

use crate::codec::{Reader, Writer};
use crate::member::Members;
use crate::snapshot_files::InterruptedInstallation;

const NAME: &str = "BEGIN";
/// The log removes files of this suffix when it opens.
const TEMPORARY_NAME: &str = "BEGIN.tmp";
/// First byte of an encoded beginning.
const VERSION: u8 = 1;
/// Longest file that is read. The members take at most 34 KiB.
const FILE_BYTES_MAX: usize = 256 << 10;

/// Where a log may begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// The last entry that is not needed. It is committed.
    pub(crate) end: EntryEnd,
    /// The newest entry up to it that names the members.
    pub(crate) members: (EntryId, Members),
}

impl Beginning {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (id, members) = &self.members;
        let mut into = Writer::default();
        into.u8(VERSION).u64(self.end.id.index).u64(self.end.id.term).u64(self.end.last.0);
        into.u64(id.index).u64(id.term);
        members.encode(&mut into);
        into.0
    }

    /// Reads what [`encode`](Self::encode) wrote; `None` for any other bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        if from.u8()? != VERSION {
            return None;
        }
        let id = EntryId { index: from.u64()?, term: from.u64()? };
        let end = EntryEnd { id, last: Lsn(from.u64()?) };
        let named = EntryId { index: from.u64()?, term: from.u64()? };
        let is_possible = (1..=end.id.index).contains(&named.index) && named.term <= end.id.term;
        let members = Members::decode(from.0).filter(|_| is_possible)?;
        Some(Self { end, members: (named, members) })
    }

    /// Reads the file, if there is one.
    ///
    /// # Errors
    /// It cannot be read, or both copies are damaged.
    pub(crate) fn read(storage: &dyn Storage) -> io::Result<Option<Self>> {
        let file = match storage.open(NAME) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = vec![0; file.len()?.min(FILE_BYTES_MAX as u64) as usize];
        let filled = read_full(&*file, &mut bytes, 0)?;
        match decode_file(&bytes[..filled]) {
            Some(beginning) => Ok(Some(beginning)),
            None => {
                let error = format!(
                    "the file {} is damaged: where the log begins is unknown. Remove the member from its group and \
                     let it join with an empty directory",
                    storage.path(NAME)
                );
                Err(io::Error::new(io::ErrorKind::InvalidData, error))
            }
        }
    }

    /// Replaces the file durably. Two syncs.
    pub(crate) fn write(&self, storage: &dyn Storage) -> io::Result<()> {
        match storage.remove(TEMPORARY_NAME) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = storage.create(TEMPORARY_NAME)?;
        write_all(&*file, &encode_file(self), 0)?;
        file.sync_data()?;
        storage.rename(TEMPORARY_NAME, NAME)?;
        storage.sync_dir()
    }
}

/// Removes the file, if there is one.
pub(crate) fn remove(storage: &dyn Storage) -> io::Result<()> {
    for name in [TEMPORARY_NAME, NAME] {
        match storage.remove(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn encode_file(beginning: &Beginning) -> Vec<u8> {
    let content = beginning.encode();
    let length = (content.len() as u32).to_le_bytes();
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&length), &content).to_le_bytes();
    [&checksum[..], &length, &content].concat().repeat(2)
}

fn decode_file(bytes: &[u8]) -> Option<Beginning> {
    // The copies have one length: the second begins in the middle, whatever the first says.
    let (first, second) = bytes.split_at(bytes.len() / 2);
    [first, second].into_iter().find_map(decode_copy)
}

fn decode_copy(bytes: &[u8]) -> Option<Beginning> {
    let (checksum, rest) = bytes.split_first_chunk()?;
    let (length, content) = rest.split_first_chunk()?;
    let is_whole = u32::from_le_bytes(*length) as usize == content.len()
        && crc32c::crc32c(rest).to_le_bytes() == *checksum;
    Beginning::decode(content).filter(|_| is_whole)
}

/// The installation of a snapshot that a crash has interrupted: its files have their names, and the log
/// is to begin behind it.
#[derive(Debug)]
pub struct Installation {
    beginning: Beginning,
    files: InterruptedInstallation,
}

impl Installation {
    /// Takes up an installation that an earlier process has begun. Called before the log is opened: it
    /// removes the log of before, which the snapshot replaces.
    ///
    /// # Errors
    /// The directory is in use by another process, or a file cannot be read or renamed.
    pub fn take_up(storage: &Arc<dyn Storage>) -> io::Result<Option<Self>> {
        let Some(files) = InterruptedInstallation::find(storage)? else { return Ok(None) };
        let Some(beginning) = Beginning::decode(files.meta()) else {
            return Err(io::Error::other("a snapshot of another member has an unknown description"));
        };
        let in_use = |error: io::Error| {
            io::Error::new(
                error.kind(),
                format!("locking {} to install a snapshot: {error}", storage.path("")),
            )
        };
        let _lock = storage.lock().map_err(in_use)?;
        Log::remove(&**storage)?;
        files.give_names()?;
        Ok(Some(Self { beginning, files }))
    }

    /// Lets the log begin behind the snapshot.
    ///
    /// # Errors
    /// The storage failed. The next start takes the installation up again.
    pub fn complete(self, member: &LogMember) -> io::Result<()> {
        member.restart_behind(self.beginning.end).map_err(io::Error::other)?;
        self.beginning.write(self.files.storage())?;
        self.files.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;
    use crate::member::Member;
    use proptest::prelude::*;
    use tidemark_log::MemoryStorage;

    fn beginning(index: u64) -> Beginning {
        let member = |id| Member {
            id: NodeId(id),
            peer_address: format!("peer{id}:1"),
            client_address: format!("client{id}:2"),
            directory: None,
            is_voter: true,
        };
        let members = Members::new((1..=3).map(member).collect()).expect("is valid");
        let end = EntryEnd { id: EntryId { index, term: 4 }, last: Lsn(index * 10) };
        Beginning { end, members: (EntryId { index: 1, term: 1 }, members) }
    }

    #[test]
    fn the_newest_beginning_is_read_back() {
        let storage = MemoryStorage::new();
        assert_eq!(Beginning::read(&storage).expect("no file"), None);
        for index in [7, 9] {
            beginning(index).write(&storage).expect("is written");
            assert_eq!(Beginning::read(&storage).expect("reads"), Some(beginning(index)));
        }
    }

    #[test]
    fn one_flipped_bit_loses_nothing_and_two_are_noticed() {
        let storage = MemoryStorage::new();
        beginning(7).write(&storage).expect("is written");
        let bytes = storage.read(NAME).expect("the file");
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            storage.put(NAME, flipped.clone());
            assert_eq!(Beginning::read(&storage).expect("reads"), Some(beginning(7)), "bit {bit}");
            let other = (bit / 8 + bytes.len() / 2) % bytes.len();
            flipped[other] ^= 1;
            storage.put(NAME, flipped);
            let error = Beginning::read(&storage).expect_err("both copies are damaged").to_string();
            assert!(error.contains("let it join with an empty directory"), "{error}");
        }
        for cut in 0..bytes.len() {
            storage.put(NAME, bytes[..cut].to_vec());
            assert!(Beginning::read(&storage).is_err(), "{cut} bytes are left");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode_file(&bytes);
            let _ = Beginning::decode(&bytes);
        }
    }
}
