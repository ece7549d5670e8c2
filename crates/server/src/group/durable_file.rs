//! Small files of a member, which are there whole: as they are, or as they were before.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Permission bits: what a member says of itself concerns its user alone.
const MODE: u32 = 0o600;

/// Replaces the file `name`; it is durable when this returns. Two syncs.
pub(super) fn replace(directory: &Path, name: &str, content: &str) -> io::Result<()> {
    let temporary = directory.join(format!("{name}.new"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(MODE).open(&temporary)?;
    file.write_all(content.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, directory.join(name))?;
    File::open(directory)?.sync_all()
}
