//! The file `group` in the data directory: which member of which cluster the directory is.
//!
//! It is written once, before the member takes part, and names the directory itself: the members
//! of a group know each other's directories, so a new disk or a copy is not taken for the member. A second
//! file has the same; if one of the two is damaged, it is written again.

use super::durable_file;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidemark_cluster::RandomId;
use tidemark_cluster::{Member, NodeId};

const NAME: &str = "group";
/// A copy of the file: a bit of either may flip.
const SECOND_NAME: &str = "group.copy";
/// Largest file that is read, in bytes.
const BYTES_MAX: u64 = 64 << 10;
const HEADER: &str =
    "# Which member of which cluster this directory is. Written by Tidemark; never change or copy it.\n";
/// Begins the last line, with the checksum of those before it. Without the line nothing is checked.
const CHECKSUM: &str = "# checksum ";

/// A directory's place in a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seat {
    /// The cluster.
    pub(crate) cluster: RandomId,
    /// The member.
    pub(crate) node: NodeId,
    /// The directory, drawn when it got its place.
    pub(crate) directory: RandomId,
    /// The members that found the group; of a member that joins, those that were there, and itself.
    pub(crate) founders: Vec<Member>,
    /// The member joins a group that is there.
    pub(crate) joins: bool,
    /// The directory is about to become the only member of the group, with the log that it has. Until that
    /// is done, it is begun again at each start.
    pub(crate) begins_alone: bool,
}

/// Why a directory's place cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SeatError {
    /// The file cannot be read or written.
    #[error("cannot use {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file has other content.
    #[error(
        "{} does not say which member this directory is: {reason}; restore the file, or let another member \
         take this one's place with an empty directory",
        path.display()
    )]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The directory is another member than the settings say.
    #[error("{} says that the directory is {found}, and the settings say {wanted}; correct --dir or the settings of the cluster", path.display())]
    Another {
        /// The file.
        path: PathBuf,
        /// What the file says.
        found: String,
        /// What the settings say.
        wanted: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    cluster: String,
    node: u64,
    directory: String,
    #[serde(default)]
    joins: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    begins_alone: bool,
    founders: Vec<FounderText>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FounderText {
    node: u64,
    peers: String,
    clients: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
}

impl Seat {
    /// Reads the directory's place; `None` if it has none.
    pub(crate) fn read(directory: &Path) -> Result<Option<Seat>, SeatError> {
        let (first, second) = (Self::read_file(directory, NAME), Self::read_file(directory, SECOND_NAME));
        let (seat, damaged) = match (first, second) {
            (Ok(Some(first)), Ok(Some(second))) if first == second => return Ok(Some(first)),
            // The first one counts. Without a second one, the directory is of an earlier build.
            (Ok(Some(seat)), _) => (seat, SECOND_NAME),
            (Ok(None) | Err(SeatError::Content { .. }), Ok(Some(seat))) => (seat, NAME),
            (other, _) => return other,
        };
        seat.write_file(directory, damaged)?;
        Ok(Some(seat))
    }

    fn read_file(directory: &Path, name: &str) -> Result<Option<Seat>, SeatError> {
        let path = directory.join(name);
        let failed = |error| SeatError::File { path: path.clone(), error };
        let text = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
            Ok(metadata) if metadata.len() > BYTES_MAX => {
                let reason = format!("it has {} bytes, more than {BYTES_MAX}", metadata.len());
                return Err(SeatError::Content { path, reason });
            }
            Ok(_) => fs::read(&path).map_err(failed)?,
        };
        let invalid = |reason: String| SeatError::Content { path: path.clone(), reason };
        let text = String::from_utf8(text).map_err(|_| invalid("it is no text".to_owned()))?;
        if !is_whole(&text) {
            return Err(invalid("its checksum does not match".to_owned()));
        }
        let text: Text = toml::from_str(&text).map_err(|error| invalid(error.message().to_owned()))?;
        let id = |text: &str| text.parse::<RandomId>().map_err(|error| invalid(error.to_string()));
        let founder = |founder: FounderText| {
            Ok(Member {
                id: NodeId(founder.node),
                peer_address: founder.peers,
                client_address: founder.clients,
                directory: founder.directory.as_deref().map(id).transpose()?,
                is_voter: true,
            })
        };
        let founders = text.founders.into_iter().map(founder).collect::<Result<_, SeatError>>()?;
        Ok(Some(Seat {
            cluster: id(&text.cluster)?,
            node: NodeId(text.node),
            directory: id(&text.directory)?,
            founders,
            joins: text.joins,
            begins_alone: text.begins_alone,
        }))
    }

    /// Writes the place; it is durable when this returns.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), SeatError> {
        // The first file makes the directory a member's.
        self.write_file(directory, SECOND_NAME)?;
        self.write_file(directory, NAME)
    }

    fn write_file(&self, directory: &Path, name: &str) -> Result<(), SeatError> {
        let text = Text {
            cluster: self.cluster.to_string(),
            node: self.node.0,
            directory: self.directory.to_string(),
            joins: self.joins,
            begins_alone: self.begins_alone,
            founders: self
                .founders
                .iter()
                .map(|member| FounderText {
                    node: member.id.0,
                    peers: member.peer_address.clone(),
                    clients: member.client_address.clone(),
                    directory: member.directory.map(|directory| directory.to_string()),
                })
                .collect(),
        };
        let text = toml::to_string(&text).expect("text and numbers have a form in TOML");
        let text = format!("{HEADER}{text}");
        let text = format!("{text}{CHECKSUM}{}\n", checksum_of(&text));
        durable_file::replace(directory, name, &text)
            .map_err(|error| SeatError::File { path: directory.join(name), error })
    }

    /// Checks that the directory is the member that the settings name.
    pub(crate) fn check(&self, directory: &Path, wanted: NodeId) -> Result<(), SeatError> {
        if self.node == wanted {
            return Ok(());
        }
        Err(SeatError::Another {
            path: directory.join(NAME),
            found: format!("member {}", self.node),
            wanted: format!("member {wanted}"),
        })
    }
}

/// Returns whether a file's checksum fits, if it has one.
fn is_whole(text: &str) -> bool {
    let Some((before, checksum)) = text.rsplit_once(CHECKSUM) else { return true };
    checksum.trim_end() == checksum_of(before)
}

/// The first digits of a digest.
fn checksum_of(text: &str) -> String {
    use sha2::{Digest as _, Sha256};
    let digest = Sha256::digest(text);
    let first = digest.first_chunk().expect("a digest has 32 bytes");
    format!("{:016x}", u64::from_be_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat() -> Seat {
        let founder = |id: u64| Member {
            id: NodeId(id),
            peer_address: format!("10.0.0.{id}:8379"),
            client_address: format!("[::{id}]:7379"),
            directory: None,
            is_voter: true,
        };
        Seat {
            cluster: RandomId([7; 16]),
            node: NodeId(2),
            directory: RandomId([9; 16]),
            founders: (1..4).map(founder).collect(),
            joins: false,
            begins_alone: false,
        }
    }

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().expect("a directory");
        assert_eq!(Seat::read(directory.path()).expect("no file is no error"), None);
        seat().write(directory.path()).expect("written");
        assert_eq!(Seat::read(directory.path()).expect("valid"), Some(seat()));
        seat().write(directory.path()).expect("written again");
        let mut joining = Seat { joins: true, begins_alone: true, ..seat() };
        joining.founders[1].directory = Some(RandomId([3; 16]));
        joining.write(directory.path()).expect("written again");
        assert_eq!(Seat::read(directory.path()).expect("valid"), Some(joining));
        let names: Vec<_> = fs::read_dir(directory.path()).expect("readable").collect();
        assert_eq!(names.len(), 2, "nothing is left over: {names:?}");
    }

    #[test]
    fn a_file_that_is_cut_or_changed_is_no_place() {
        let directory = tempfile::tempdir().expect("a directory");
        seat().write(directory.path()).expect("written");
        let path = directory.path().join(NAME);
        let whole = fs::read_to_string(&path).expect("readable");
        fs::remove_file(directory.path().join(SECOND_NAME)).expect("removable");
        for text in ["", "cluster = 5", &whole[..whole.len() / 2], &whole.replace("node = 2", "node = 'x'")] {
            fs::write(&path, text).expect("writable");
            let error = Seat::read(directory.path()).expect_err(text).to_string();
            assert!(error.contains("does not say which member") && error.contains("restore"), "{error}");
        }
    }

    #[test]
    fn no_flipped_bit_changes_the_place() {
        let directory = tempfile::tempdir().expect("a directory");
        let paths = [NAME, SECOND_NAME].map(|name| directory.path().join(name));
        seat().write(directory.path()).expect("written");
        let whole = fs::read(&paths[0]).expect("readable");
        for bit in (0..whole.len() * 8).step_by(3) {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            for path in &paths {
                fs::write(path, &flipped).expect("writable");
                assert_eq!(Seat::read(directory.path()).expect("one is whole"), Some(seat()), "bit {bit}");
                assert_eq!(Seat::read(directory.path()).expect("both are whole"), Some(seat()), "bit {bit}");
                fs::write(path, &whole).expect("writable");
            }
        }
        // A directory of an earlier build has one file, without a checksum.
        let text = String::from_utf8(whole).expect("text");
        let (earlier, _) = text.rsplit_once(CHECKSUM).expect("a checksum");
        fs::write(&paths[0], earlier).expect("writable");
        fs::remove_file(&paths[1]).expect("removable");
        assert_eq!(Seat::read(directory.path()).expect("valid"), Some(seat()));
        assert!(paths[1].exists(), "the second file is written");
    }

    #[test]
    fn another_member_than_the_settings_name_is_refused() {
        let error = seat().check(Path::new("/data"), NodeId(3)).expect_err("another").to_string();
        assert!(
            error.contains("member 2") && error.contains("member 3") && error.contains("--dir"),
            "{error}"
        );
        seat().check(Path::new("/data"), NodeId(2)).expect("the same");
    }
}
