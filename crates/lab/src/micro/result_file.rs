//! The result file, replaced atomically: a reader finds either all results or the previous content.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Destination of the results.
#[derive(Debug)]
pub(crate) struct ResultFile<'a> {
    /// The path as given.
    path: &'a Path,
    /// The file, with symbolic links resolved. `None` if the path is not a regular file, such as a
    /// pipe.
    file: Option<PathBuf>,
}

/// Why results cannot be written. A separate type: a broken pipe here must not pass for an output
/// that its reader closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResultFileError {
    #[error("{0} is a directory; write the results to a file in it, such as {0}/results.json")]
    Directory(String),
    #[error("cannot write {path}: {error}")]
    Unwritable { path: String, error: String },
    #[error("cannot make a file in the directory of {path}, which becomes {path} once it is whole: {error}")]
    NoneBeside { path: String, error: String },
}

impl<'a> ResultFile<'a> {
    /// Checks that the file can be written, without changing it.
    pub(crate) fn at(path: &'a Path) -> Result<Self, ResultFileError> {
        let unwritable = |error: &io::Error| unwritable(path, error);
        let file = match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                return Err(ResultFileError::Directory(path.display().to_string()));
            }
            // Opening and closing a pipe would end its reader's input.
            Ok(found) if !found.is_file() => return Ok(ResultFile { path, file: None }),
            Ok(_) => {
                OpenOptions::new().append(true).open(path).map_err(|error| unwritable(&error))?;
                fs::canonicalize(path).map_err(|error| unwritable(&error))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
            Err(error) => return Err(unwritable(&error)),
        };
        let beside = beside(&file);
        make(&beside, "").and_then(|()| fs::remove_file(&beside)).map_err(|error| {
            ResultFileError::NoneBeside { path: path.display().to_string(), error: error.to_string() }
        })?;
        Ok(ResultFile { path, file: Some(file) })
    }

    /// Writes the file. If that fails or the program ends meanwhile, the file is unchanged.
    pub(crate) fn write(&self, text: &str) -> Result<(), ResultFileError> {
        let written = match &self.file {
            Some(file) => replace(file, text),
            None => fs::write(self.path, text),
        };
        written.map_err(|error| unwritable(self.path, &error))
    }
}

fn unwritable(path: &Path, error: &io::Error) -> ResultFileError {
    ResultFileError::Unwritable { path: path.display().to_string(), error: error.to_string() }
}

/// Returns a name in the same directory, hence on the same file system, so that a rename is atomic.
fn beside(file: &Path) -> PathBuf {
    file.with_file_name(format!(".results-{}.part", std::process::id()))
}

/// Creates a file. First removes one that a killed program with the same process number left
/// behind.
fn make(path: &Path, text: &str) -> io::Result<()> {
    let _ = fs::remove_file(path);
    io::Write::write_all(&mut OpenOptions::new().write(true).create_new(true).open(path)?, text.as_bytes())
}

fn replace(file: &Path, text: &str) -> io::Result<()> {
    let beside = beside(file);
    let replaced = make(&beside, text).and_then(|()| {
        if let Ok(before) = fs::metadata(file) {
            fs::set_permissions(&beside, before.permissions())?;
        }
        fs::rename(&beside, file)
    });
    replaced.inspect_err(|_| _ = fs::remove_file(&beside))
}

#[cfg(test)]
mod tests {
    use super::{ResultFile, ResultFileError};
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    #[test]
    fn a_concurrent_reader_reads_the_whole_file() {
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("a.json"), directory.path().join("link"));
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&path, &link).unwrap();
        let mut reader = fs::File::open(&path).unwrap();
        ResultFile::at(&link).unwrap().write("after").unwrap();
        let mut read = String::new();
        reader.read_to_string(&mut read).unwrap();
        assert_eq!((read.as_str(), fs::read_to_string(&path).unwrap().as_str()), ("before", "after"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn nothing_is_there_before_there_are_results() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json");
        let file = ResultFile::at(&path).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        file.write("text").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "text");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_file_is_written_where_it_is_or_named() {
        let full = ResultFile::at(Path::new("/dev/full")).unwrap().write("text").unwrap_err();
        assert_eq!(full.to_string(), "cannot write /dev/full: No space left on device (os error 28)");
        ResultFile::at(Path::new("/dev/null")).unwrap().write("text").unwrap();
        let directory = ResultFile::at(Path::new("/tmp")).unwrap_err();
        assert!(directory.to_string().contains("such as /tmp/results.json"), "{directory}");
        let nowhere = ResultFile::at(Path::new("/nowhere/x.json")).unwrap_err();
        assert!(matches!(nowhere, ResultFileError::NoneBeside { .. }), "{nowhere}");
        let below_a_file = ResultFile::at(Path::new("/dev/null/x.json")).unwrap_err();
        assert!(matches!(below_a_file, ResultFileError::Unwritable { .. }), "{below_a_file}");
    }
}
