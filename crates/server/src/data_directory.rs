//! Permissions of the data directory.

use crate::durability::recover_error::RecoverError;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Permission bits of all users but the owner.
const OTHERS: u32 = 0o077;
const PRIVATE: u32 = 0o700;

/// Makes an existing, empty directory private. Refuses one that has files and that other users can
/// reach: its owner must decide whether they may read all values and the secrets of future draws.
pub(crate) fn make_private(directory: &Path) -> Result<(), RecoverError> {
    let failed = |error| RecoverError::Directory { dir: directory.to_owned(), error };
    let mode = match fs::metadata(directory) {
        Ok(metadata) => metadata.permissions().mode() & 0o777,
        // The log creates it, as private.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if mode & OTHERS == 0 {
        return Ok(());
    }
    if fs::read_dir(directory).map_err(failed)?.next().is_some() {
        return Err(RecoverError::Readable { dir: directory.to_owned(), mode });
    }
    fs::set_permissions(directory, Permissions::from_mode(PRIVATE)).map_err(failed)
}
