//! The list of the files of a transfer, in the directory that receives them.
//!
//! ```text
//! crc u32 (of the rest), stage u8, list
//! ```

use std::io;

use tidemark_log::Storage;
use tidemark_log::storage::{read_full, write_all};

use super::fields::Fields;
use super::file_list::FileList;

const NAME: &str = "incoming.list";
/// The log removes files of this suffix when it opens.
const TEMPORARY_NAME: &str = "incoming.list.tmp";

/// How far a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Files arrive.
    Receiving,
    /// All files are there, verified and durable.
    Received,
    /// The files get their names.
    Installing,
}

const STAGES: [(u8, Stage); 3] = [(1, Stage::Receiving), (2, Stage::Received), (3, Stage::Installing)];

/// Reads the list. A damaged one counts as none.
pub(super) fn read(storage: &dyn Storage) -> io::Result<Option<(Stage, FileList)>> {
    let file = match storage.open(NAME) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = vec![0; file.len()?.min(1 << 20) as usize];
    let filled = read_full(&*file, &mut bytes, 0)?;
    Ok(decode(&bytes[..filled]))
}

/// Replaces the list, and makes it and all names in the directory durable.
pub(super) fn write(storage: &dyn Storage, stage: Stage, list: &FileList) -> io::Result<()> {
    remove_name(storage, TEMPORARY_NAME)?;
    let file = storage.create(TEMPORARY_NAME)?;
    write_all(&*file, &encode(stage, list), 0)?;
    file.sync_data()?;
    storage.rename(TEMPORARY_NAME, NAME)?;
    storage.sync_dir()
}

/// Removes the list durably, if there is one.
pub(crate) fn remove(storage: &dyn Storage) -> io::Result<()> {
    remove_name(storage, TEMPORARY_NAME)?;
    remove_name(storage, NAME)?;
    storage.sync_dir()
}

fn remove_name(storage: &dyn Storage, name: &str) -> io::Result<()> {
    match storage.remove(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn encode(stage: Stage, list: &FileList) -> Vec<u8> {
    let code = STAGES.iter().find(|(_, known)| *known == stage).map(|(code, _)| *code);
    let content = [&[code.expect("every stage has a code")], &list.encode()[..]].concat();
    [&crc32c::crc32c(&content).to_le_bytes()[..], &content].concat()
}

fn decode(bytes: &[u8]) -> Option<(Stage, FileList)> {
    let mut fields = Fields::new(bytes);
    let checksum = fields.u32()?;
    if checksum != crc32c::crc32c(fields.clone().rest()) {
        return None;
    }
    let code = fields.u8()?;
    let (_, stage) = STAGES.into_iter().find(|(known, _)| *known == code)?;
    let list = FileList::decode(&mut fields).ok()?;
    fields.rest().is_empty().then_some((stage, list))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_log::MemoryStorage;

    #[test]
    fn a_list_is_read_as_it_was_written_or_not_at_all() {
        let storage = MemoryStorage::new();
        assert_eq!(read(&storage).expect("no list"), None);
        let list = FileList { meta: vec![1, 2, 3], files: Vec::new() };
        for (_, stage) in STAGES {
            write(&storage, stage, &list).expect("written");
            assert_eq!(read(&storage).expect("a list"), Some((stage, list.clone())));
        }
        let bytes = storage.read(NAME).expect("the file");
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            storage.put(NAME, flipped);
            assert_eq!(read(&storage).expect("the file can be read"), None, "bit {bit}");
        }
        remove(&storage).expect("removed");
        remove(&storage).expect("nothing is there");
        assert_eq!(read(&storage).expect("no list"), None);
    }
}
