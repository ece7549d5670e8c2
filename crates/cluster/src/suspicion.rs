//! May this member have lost what it acknowledged?
//!
//! A member that acknowledges what is written but not synced loses it in a power failure. A member whose
//! log was damaged, or whose directory is an older copy, has lost it too. Such a member is *suspect*: it
//! has no vote until a leader that was elected without it has caught it up. One that may have forgotten
//! its vote too takes no part at all: it must not even acknowledge.
//!
//! ```text
//! begin ─► the log is opened ─► end_recovery ─► runs: set_unsynced, heal ─► stop
//! ```
//!
//! The file says what a run that ends without `stop` may have lost, so each step is durable before the
//! run goes on.

use std::fmt;
use std::io;
use std::path::Path;

use crate::slot_file::{SlotError, SlotFile, SlotName};

const NAME: SlotName = SlotName { name: "standing", magic: *b"STND" };
const VERSION: u8 = 1;
const RECORD_BYTES: usize = 27;

/// Where the kernel says which boot this is.
const BOOT_ID_PATH: &str = "/proc/sys/kernel/random/boot_id";

/// One boot of the machine: memory of the kernel survives a process, not a boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootId([u8; 16]);

impl BootId {
    /// Asks the kernel. Returns `None` if it does not say: then every start counts as a new boot.
    pub fn current() -> Option<Self> {
        Self::parse(&std::fs::read_to_string(BOOT_ID_PATH).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let digits = text.trim().replace('-', "");
        let is_hex = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from_str_radix(&digits, 16).ok().filter(|_| is_hex)?;
        Some(Self(number.to_be_bytes()))
    }
}

/// Why a member may have lost what it acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspicion {
    /// The machine stopped without a clean stop, and the member had acknowledged what was not synced.
    PowerFailure,
    /// The data was damaged, and was removed.
    DamagedLog,
    /// The recovery of the log was interrupted: it may have cut damage.
    InterruptedRecovery,
    /// The directory is a copy, and the original may have gone on.
    Copy,
    /// The file that says what the last run may have lost is missing or damaged.
    Unknown,
}

impl Suspicion {
    const ALL: [Self; 5] =
        [Self::PowerFailure, Self::DamagedLog, Self::InterruptedRecovery, Self::Copy, Self::Unknown];

    /// Returns whether the member may have forgotten its vote, and not only entries of the log.
    pub fn may_have_forgotten_votes(self) -> bool {
        match self {
            Self::PowerFailure | Self::DamagedLog | Self::InterruptedRecovery => false,
            Self::Copy | Self::Unknown => true,
        }
    }

    fn code(self) -> u8 {
        match self {
            Self::PowerFailure => 1,
            Self::DamagedLog => 2,
            Self::InterruptedRecovery => 3,
            Self::Copy => 4,
            Self::Unknown => 5,
        }
    }
}

impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PowerFailure => "the machine stopped while writes were acknowledged before their sync",
            Self::DamagedLog => "its data was damaged, and was removed to get all of it from the others",
            Self::InterruptedRecovery => "a start was interrupted while the log was recovered",
            Self::Copy => {
                "the directory is a copy or was restored, and its original may have voted and acknowledged more"
            }
            Self::Unknown => "it is not known how the last run ended, and what the member has voted",
        })
    }
}

/// What is known when a run begins.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// This boot of the machine.
    pub boot: Option<BootId>,
    /// Whether the run acknowledges writes before their sync: every durability mode but `always`.
    pub acknowledges_unsynced: bool,
    /// Whether the directory has never acknowledged anything: it is about to join.
    pub is_new: bool,
}

/// What the file has of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// Zeros if the kernel did not say.
    boot: [u8; 16],
    /// Number of the file in its file system.
    inode: u64,
    is_recovering: bool,
    acknowledges_unsynced: bool,
    is_stopped: bool,
    suspicion: Option<Suspicion>,
}

impl Run {
    fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut record = [0; RECORD_BYTES];
        record[0] = VERSION;
        record[1..17].copy_from_slice(&self.boot);
        record[17..25].copy_from_slice(&self.inode.to_le_bytes());
        let flags = [self.is_recovering, self.acknowledges_unsynced, self.is_stopped];
        record[25] = flags.into_iter().zip(0..).map(|(flag, bit)| u8::from(flag) << bit).sum();
        record[26] = self.suspicion.map_or(0, Suspicion::code);
        record
    }

    fn decode(record: &[u8]) -> Option<Self> {
        let record: &[u8; RECORD_BYTES] = record.try_into().ok()?;
        let flag = |bit: u8| record[25] >> bit & 1 == 1;
        let suspicion = match record[26] {
            0 => None,
            code => Some(Suspicion::ALL.into_iter().find(|suspicion| suspicion.code() == code)?),
        };
        (record[0] == VERSION && record[25] < 8).then_some(Self {
            boot: *record[1..].first_chunk()?,
            inode: u64::from_le_bytes(*record[17..].first_chunk()?),
            is_recovering: flag(0),
            acknowledges_unsynced: flag(1),
            is_stopped: flag(2),
            suspicion,
        })
    }

    /// Decides what the run may have lost, as far as it is known before the log is opened.
    fn judge(&self, boot: Option<BootId>, inode: u64) -> Option<Suspicion> {
        if self.suspicion.is_some() {
            return self.suspicion;
        }
        if self.inode != inode {
            return Some(Suspicion::Copy);
        }
        if self.is_recovering {
            return Some(Suspicion::InterruptedRecovery);
        }
        let is_same_boot = boot.is_some_and(|boot| boot.0 == self.boot);
        let lost = !self.is_stopped && self.acknowledges_unsynced && !is_same_boot;
        lost.then_some(Suspicion::PowerFailure)
    }
}

/// The file that says what this run may lose. Each change is durable before the call returns.
#[derive(Debug)]
pub struct SuspicionFile {
    file: SlotFile,
    run: Run,
}

impl SuspicionFile {
    /// Judges the last run and begins this one. Call it before the log is opened.
    pub fn begin(directory: &Path, start: Start) -> io::Result<Self> {
        let found = match SlotFile::open(directory, NAME) {
            Ok(found) => found,
            Err(SlotError::Damaged { .. }) => None,
            Err(SlotError::Io(error)) => return Err(error),
        };
        let (file, last) = match found {
            Some((file, record)) => (file, record.as_deref().and_then(Run::decode)),
            None => (SlotFile::create(directory, NAME)?, None),
        };
        let inode = file.inode()?;
        let suspicion = match last {
            _ if start.is_new => None,
            Some(last) => last.judge(start.boot, inode),
            None => Some(Suspicion::Unknown),
        };
        let run = Run {
            boot: start.boot.map_or([0; 16], |boot| boot.0),
            inode,
            is_recovering: true,
            acknowledges_unsynced: start.acknowledges_unsynced,
            is_stopped: false,
            suspicion,
        };
        let mut begun = Self { file, run };
        begun.save(run)?;
        Ok(begun)
    }

    /// Records what the recovery of the log has found: `is_damaged` if it has cut anything that may have
    /// been acknowledged. All that the log has must be synced already.
    pub fn end_recovery(&mut self, is_damaged: bool) -> io::Result<()> {
        let found = is_damaged.then_some(Suspicion::DamagedLog);
        self.save(Run { is_recovering: false, suspicion: self.run.suspicion.or(found), ..self.run })
    }

    /// Returns whether damaged data may be removed and got from the others. Not if the member may have
    /// forgotten its vote, or if that was done before and this suspicion has not ended.
    pub fn may_replace_data(&self) -> bool {
        match self.run.suspicion {
            Some(Suspicion::DamagedLog | Suspicion::Copy | Suspicion::Unknown) => false,
            None | Some(Suspicion::PowerFailure | Suspicion::InterruptedRecovery) => true,
        }
    }

    /// Records that the data is damaged, and will be removed. A suspicion that the member may have forgotten
    /// its vote stays.
    pub fn note_damage(&mut self) -> io::Result<()> {
        let is_worse = self.run.suspicion.is_some_and(Suspicion::may_have_forgotten_votes);
        if is_worse || self.run.suspicion == Some(Suspicion::DamagedLog) {
            return Ok(());
        }
        self.save(Run { suspicion: Some(Suspicion::DamagedLog), ..self.run })
    }

    /// Returns why this member may have lost what it acknowledged, or `None` if it has not.
    pub fn suspicion(&self) -> Option<Suspicion> {
        self.run.suspicion
    }

    /// Records whether writes are acknowledged before their sync. Call it with `true` before the first
    /// such acknowledgement, and with `false` when all that was acknowledged is synced.
    pub fn set_unsynced(&mut self, acknowledges_unsynced: bool) -> io::Result<()> {
        if acknowledges_unsynced == self.run.acknowledges_unsynced {
            return Ok(());
        }
        self.save(Run { acknowledges_unsynced, ..self.run })
    }

    /// Ends the suspicion: a leader that was elected without this member has caught it up, and all of it
    /// is synced; or the loss was accepted.
    pub fn heal(&mut self) -> io::Result<()> {
        self.save(Run { suspicion: None, ..self.run })
    }

    /// Records a clean stop: nothing was acknowledged that is not synced. A suspicion stays.
    pub fn stop(mut self) -> io::Result<()> {
        self.save(Run { is_stopped: true, ..self.run })
    }

    fn save(&mut self, run: Run) -> io::Result<()> {
        self.file.save(&run.encode())?;
        self.run = run;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    const BOOT: Option<BootId> = Some(BootId([1; 16]));
    const NEXT_BOOT: Option<BootId> = Some(BootId([2; 16]));

    fn start(boot: Option<BootId>, acknowledges_unsynced: bool) -> Start {
        Start { boot, acknowledges_unsynced, is_new: false }
    }

    /// A directory that has joined, with a first run in it.
    fn joined(boot: Option<BootId>, acknowledges_unsynced: bool) -> (tempfile::TempDir, SuspicionFile) {
        let directory = tempfile::tempdir().expect("a directory");
        let new = Start { is_new: true, ..start(boot, acknowledges_unsynced) };
        let mut file = SuspicionFile::begin(directory.path(), new).expect("a new file");
        file.end_recovery(false).expect("saved");
        assert_eq!(file.suspicion(), None);
        (directory, file)
    }

    fn begin(directory: &tempfile::TempDir, boot: Option<BootId>) -> SuspicionFile {
        SuspicionFile::begin(directory.path(), start(boot, true)).expect("the file")
    }

    #[test]
    fn a_loss_is_suspected_if_the_machine_stopped_before_a_sync() {
        let lost = Some(Suspicion::PowerFailure);
        // unsynced acknowledgements, clean stop, next boot ─► suspicion
        let table = [
            (true, false, NEXT_BOOT, lost),
            (true, false, None, lost),
            (true, false, BOOT, None),
            (true, true, NEXT_BOOT, None),
            (true, true, BOOT, None),
            (false, false, NEXT_BOOT, None),
            (false, false, BOOT, None),
            (false, true, NEXT_BOOT, None),
        ];
        for (unsynced, is_stopped, boot, suspicion) in table {
            let (directory, first) = joined(BOOT, unsynced);
            if is_stopped {
                first.stop().expect("saved");
            }
            let case = (unsynced, is_stopped, boot);
            assert_eq!(begin(&directory, boot).suspicion(), suspicion, "{case:?}");
        }
        // A kernel that does not say which boot it is has a new one at every start.
        let (directory, _) = joined(None, true);
        assert_eq!(begin(&directory, None).suspicion(), lost);
    }

    #[test]
    fn the_mode_may_change_while_the_member_runs() {
        for unsynced in [false, true] {
            let (directory, mut first) = joined(BOOT, !unsynced);
            first.set_unsynced(unsynced).expect("saved");
            let suspicion = unsynced.then_some(Suspicion::PowerFailure);
            assert_eq!(begin(&directory, NEXT_BOOT).suspicion(), suspicion);
        }
    }

    #[test]
    fn damage_of_the_log_is_suspected_even_if_the_start_that_cut_it_is_killed() {
        let (directory, first) = joined(BOOT, false);
        first.stop().expect("saved");
        let mut second = begin(&directory, BOOT);
        assert_eq!(second.suspicion(), None);
        second.end_recovery(true).expect("saved");
        assert_eq!(second.suspicion(), Some(Suspicion::DamagedLog));
        assert_eq!(begin(&directory, BOOT).suspicion(), Some(Suspicion::DamagedLog));

        let (directory, first) = joined(BOOT, false);
        first.stop().expect("saved");
        let cutting = begin(&directory, BOOT);
        drop(cutting);
        assert_eq!(begin(&directory, BOOT).suspicion(), Some(Suspicion::InterruptedRecovery));
    }

    #[test]
    fn a_suspicion_stays_until_it_is_healed() {
        let (directory, first) = joined(BOOT, true);
        drop(first);
        let mut second = begin(&directory, NEXT_BOOT);
        second.end_recovery(false).expect("saved");
        second.set_unsynced(false).expect("saved");
        second.stop().expect("saved");
        let mut third = begin(&directory, NEXT_BOOT);
        assert_eq!(third.suspicion(), Some(Suspicion::PowerFailure));
        third.end_recovery(true).expect("saved");
        assert_eq!(third.suspicion(), Some(Suspicion::PowerFailure), "the first reason is kept");
        third.heal().expect("saved");
        assert_eq!(third.suspicion(), None);
        drop(third);
        assert_eq!(begin(&directory, NEXT_BOOT).suspicion(), None);
    }

    #[test]
    fn data_is_replaced_once_until_the_suspicion_ends() {
        let (directory, mut first) = joined(BOOT, true);
        assert!(first.may_replace_data());
        first.note_damage().expect("saved");
        assert_eq!(first.suspicion(), Some(Suspicion::DamagedLog));
        assert!(!first.may_replace_data());
        drop(first);
        let mut second = begin(&directory, BOOT);
        assert_eq!(second.suspicion(), Some(Suspicion::DamagedLog));
        second.heal().expect("saved");
        assert!(second.may_replace_data());
        // After a power failure damage is likely.
        drop(second);
        let mut third = begin(&directory, NEXT_BOOT);
        assert!(third.may_replace_data());
        third.note_damage().expect("saved");
        assert_eq!(third.suspicion(), Some(Suspicion::DamagedLog));
        let mut unknown =
            SuspicionFile::begin(tempfile::tempdir().expect("a directory").path(), start(BOOT, true))
                .expect("new");
        assert!(!unknown.may_replace_data());
        unknown.note_damage().expect("nothing to save");
        assert_eq!(unknown.suspicion(), Some(Suspicion::Unknown));
    }

    #[test]
    fn a_copy_of_the_directory_is_suspect_and_a_renamed_one_is_not() {
        let (directory, first) = joined(BOOT, false);
        first.stop().expect("saved");
        let copy = tempfile::tempdir().expect("a directory");
        fs::copy(directory.path().join("standing"), copy.path().join("standing")).expect("a copy");
        let mut copied = begin(&copy, BOOT);
        assert_eq!(copied.suspicion(), Some(Suspicion::Copy));
        copied.end_recovery(false).expect("saved");
        copied.heal().expect("saved");
        drop(copied);
        assert_eq!(begin(&copy, BOOT).suspicion(), None, "a healed copy is a member like others");

        let moved = directory.path().join("moved");
        fs::create_dir(&moved).expect("a directory");
        fs::rename(directory.path().join("standing"), moved.join("standing")).expect("moved");
        let begun = SuspicionFile::begin(&moved, start(BOOT, true)).expect("the file");
        assert_eq!(begun.suspicion(), None);
    }

    #[test]
    fn without_a_valid_file_a_loss_is_suspected() {
        let (directory, _) = joined(BOOT, false);
        let path = directory.path().join("standing");
        fs::remove_file(&path).expect("removed");
        assert_eq!(begin(&directory, BOOT).suspicion(), Some(Suspicion::Unknown));
        for damaged in [&[][..], &[7; 8192]] {
            fs::write(&path, damaged).expect("a file");
            assert_eq!(begin(&directory, BOOT).suspicion(), Some(Suspicion::Unknown));
        }
        // Created, and killed before the first record.
        SlotFile::create(directory.path(), NAME).expect("a file");
        assert_eq!(begin(&directory, BOOT).suspicion(), Some(Suspicion::Unknown));
    }

    #[test]
    fn this_machine_says_which_boot_it_is() {
        let boot = BootId::current().expect("Linux");
        assert_eq!(Some(boot), BootId::current());
        for text in ["", "x", "+1111111-1111-1111-1111-111111111111", &"1".repeat(33)] {
            assert_eq!(BootId::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_run_is_read_as_it_is_written(
            boot: [u8; 16], inode: u64, flags: [bool; 3], code in 0_usize..6,
        ) {
            let [is_recovering, acknowledges_unsynced, is_stopped] = flags;
            let suspicion = Suspicion::ALL.get(code).copied();
            let run = Run { boot, inode, is_recovering, acknowledges_unsynced, is_stopped, suspicion };
            prop_assert_eq!(Run::decode(&run.encode()), Some(run));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            Run::decode(&bytes);
        }
    }
}
