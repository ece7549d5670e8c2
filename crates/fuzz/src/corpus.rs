//! The kept inputs: `fuzz/corpus/TARGET/NAME`.
//!
//! Inputs whose name begins with `found-` were found by long runs and are kept unchanged. All
//! others are made by `tidemark-fuzz make-corpus`; their bytes differ between runs where they
//! depend on the order of a set's members or on the time.

use crate::{TARGETS, Target};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Prefix of the names that `make-corpus` does not touch.
const FOUND: &str = "found-";
/// Most bytes of the whole corpus, over all targets.
const CORPUS_BYTES_MAX: u64 = 200_000;

/// Returns the directory of the kept inputs.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

/// Returns the kept inputs of a target, in the order of their names.
pub fn kept(target: &Target) -> Result<Vec<(String, Vec<u8>)>> {
    let folder = root().join(target.name);
    let entries = fs::read_dir(&folder).with_context(|| format!("no corpus in {}", folder.display()))?;
    let mut inputs = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        inputs.push((name, bytes));
    }
    inputs.sort_unstable();
    ensure!(!inputs.is_empty(), "no inputs in {}: run `tidemark-fuzz make-corpus`", folder.display());
    Ok(inputs)
}

/// Writes the initial inputs of every target's corpus, and removes obsolete ones.
pub fn make() -> Result<()> {
    let mut bytes = 0;
    for target in TARGETS {
        let folder = root().join(target.name);
        fs::create_dir_all(&folder)?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if !entry.file_name().to_string_lossy().starts_with(FOUND) {
                fs::remove_file(entry.path())?;
            }
        }
        for (name, input) in (target.corpus)() {
            assert!(!name.starts_with(FOUND), "{name} is the name of an input that was found");
            fs::write(folder.join(name), input)?;
        }
        bytes += size(&folder)?;
    }
    ensure!(
        bytes <= CORPUS_BYTES_MAX,
        "the corpus has {bytes} bytes, and at most {CORPUS_BYTES_MAX} are to be kept: make the inputs smaller"
    );
    println!("{bytes} bytes in {}", root().display());
    Ok(())
}

fn size(folder: &Path) -> io::Result<u64> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.metadata()?.len())).sum()
}
