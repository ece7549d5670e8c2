//! The file with the results: whoever opens it finds all of them, or what was there before.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Where the results go.
#[derive(Debug)]
pub(crate) struct ResultFile<'a> {
    /// As it was given.
    path: &'a Path,
    /// The file itself, where the path is a link to it. None of what is no file, such as a pipe.
    file: Option<PathBuf>,
}

/// Why results cannot be written. An error of its own: a file that is a pipe and breaks is no output that was closed by who
/// has seen enough.
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
    /// Finds out whether the file can be written, and leaves it as it is.
    pub(crate) fn at(path: &'a Path) -> Result<Self, ResultFileError> {
        let unwritable = |error: &io::Error| unwritable(path, error);
        let file = match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                return Err(ResultFileError::Directory(path.display().to_string()));
            }
            // To open a pipe and close it would be the end of who reads it.
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

    /// Writes it. If that fails, or the program ends meanwhile, the file is as it was.
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

/// A name in the same directory, which is on the same file system: the file there can become the other one in a single step.
fn beside(file: &Path) -> PathBuf {
    file.with_file_name(format!(".results-{}.part", std::process::id()))
}

/// Makes a file, also where a program with the same number was ended before it had taken away its own.
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
    fn who_reads_the_file_meanwhile_reads_it_whole() {
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
