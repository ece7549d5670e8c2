//! A temporary folder that is removed on drop.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A new folder, by default in the system's folder for temporary files.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

/// Number of folders that this process has created.
static MADE: AtomicU64 = AtomicU64::new(0);

impl Folder {
    pub(crate) fn new() -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    /// Creates it in this folder.
    pub(crate) fn new_in(parent: &Path) -> io::Result<Self> {
        loop {
            let name = format!("tidemark-lab-{}-{}", std::process::id(), MADE.fetch_add(1, Relaxed));
            let path = parent.join(name);
            match fs::create_dir(&path) {
                // An earlier process with the same number ended before it removed its folder.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| Folder(path)),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Best effort: a leftover folder in the temporary folder does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::Folder;

    #[test]
    fn it_is_gone_with_what_is_in_it() {
        let (one, other) = (Folder::new().unwrap(), Folder::new().unwrap());
        let path = one.path().to_owned();
        assert_ne!(path, other.path());
        std::fs::write(path.join("file"), "text").unwrap();
        drop(one);
        assert!(!path.exists() && other.path().exists());
    }
}
