//! The changes in a record of the log: commands as they were called, for replay and for the change
//! stream.

use crate::command::{self, Command, KeySpec, WriteReach, flags, key_uses_of, once};
use crate::keyspace::{DATABASES, LIBRARIES, MAX_BYTES, SESSIONS, is_internal};
use crate::persist::added_points::AddedPoints;
use crate::persist::apply_error::ApplyError;
use crate::persist::points::PointsDecoder;
use crate::persist::record::{ACKNOWLEDGEMENT, Cursor, LoggedCommand, kind};
use crate::script::command::{DELETE_ID, SET_ID};
use tidemark_log::Record;

/// One change, borrowed from its record.
#[derive(Debug, Clone)]
pub enum Change<'a> {
    /// A command ran.
    Command {
        /// The command.
        command: &'static Command,
        /// Its database.
        db: u8,
        /// Its arguments, starting with the command name.
        args: Vec<&'a [u8]>,
    },
    /// The position of a named subscription moved; no key changed.
    Acknowledged {
        /// Name of the subscription, and the acknowledged LSN.
        args: Vec<&'a [u8]>,
    },
    /// Keys were removed because they had expired.
    Expired {
        /// Their database.
        db: u8,
        /// The keys.
        keys: Vec<&'a [u8]>,
    },
    /// Points were added to a series.
    Points(AddedPoints),
}

impl Change<'_> {
    /// Database of the change.
    pub fn db(&self) -> u8 {
        match self {
            Change::Command { db, .. } | Change::Expired { db, .. } => *db,
            Change::Points(points) => points.db(),
            Change::Acknowledged { .. } => 0,
        }
    }

    /// Whether it concerns the sessions of `ONCE` or the libraries of functions, and no key of a client.
    pub fn is_internal(&self) -> bool {
        is_internal(self.db())
    }

    /// Whether it may change keys of other databases.
    pub fn reaches_other_databases(&self) -> bool {
        match self {
            Change::Command { command, .. } => {
                matches!(command.reach, WriteReach::OtherDatabase | WriteReach::Databases)
            }
            Change::Expired { .. } | Change::Points(_) | Change::Acknowledged { .. } => false,
        }
    }

    /// Whether `is_wanted` holds for one of the changed keys. Always true for a change of every
    /// key.
    pub fn touches(&self, is_wanted: impl Fn(&[u8]) -> bool) -> bool {
        match self {
            Change::Acknowledged { .. } => false,
            Change::Expired { keys, .. } => keys.iter().any(|key| is_wanted(key)),
            Change::Points(points) => is_wanted(points.key()),
            Change::Command { command, args, .. } => {
                if matches!(command.keys, KeySpec::All | KeySpec::Each) {
                    return true;
                }
                let positions = command.keys.positions(args);
                let mut wanted = positions
                    .iter()
                    .enumerate()
                    .filter(|(_, position)| args.get(**position).is_some_and(|key| is_wanted(key)))
                    .peekable();
                if wanted.peek().is_none() {
                    return false;
                }
                let uses = key_uses_of(command, args);
                // The last known use also holds for all further keys.
                wanted.any(|(number, _)| {
                    uses.get(number).or(uses.last()).is_none_or(|use_of_key| !use_of_key.starts_with("RO"))
                })
            }
        }
    }
}

/// The changes of one record, in order.
#[derive(Debug, Clone)]
pub struct Changes<'a> {
    form: Form<'a>,
    /// Whether all changes were read, or an error was returned.
    has_ended: bool,
}

/// What is left of a record.
#[derive(Debug, Clone)]
enum Form<'a> {
    Command(Cursor<'a>),
    Transaction(Cursor<'a>),
    Expiry(Cursor<'a>),
    Points {
        db: u8,
        runs: Box<PointsDecoder<'a>>,
    },
    /// Points whose database cannot be read.
    Flawed(ApplyError),
}

impl<'a> Changes<'a> {
    /// Returns the changes of a record; `None` if it concerns watched reads rather than data, or
    /// has an unknown kind.
    pub fn of(record: &Record<'a>) -> Option<Changes<'a>> {
        let cursor = Cursor::new(record.payload);
        let is_empty = cursor.is_empty();
        let (form, has_ended) = match record.kind {
            kind::COMMAND => (Form::Command(cursor), false),
            kind::EXPIRY => (Form::Expiry(cursor), false),
            kind::TRANSACTION => (Form::Transaction(cursor), is_empty),
            kind::POINTS => match points_of(record) {
                Ok((db, runs)) => {
                    let is_empty = runs.is_empty();
                    (Form::Points { db, runs: Box::new(runs) }, is_empty)
                }
                Err(error) => (Form::Flawed(error), false),
            },
            _ => return None,
        };
        Some(Changes { form, has_ended })
    }

    /// Reads the next change, and whether it is the last.
    fn read(&mut self) -> Result<(Change<'a>, bool), ApplyError> {
        match &mut self.form {
            Form::Transaction(cursor) => {
                let command = cursor.nested().ok_or_else(|| cursor.malformed("a command is cut off"));
                Ok((whole(&mut command?, read_command)?, cursor.is_empty()))
            }
            Form::Expiry(cursor) => Ok((whole(cursor, read_expiry)?, true)),
            Form::Command(cursor) => Ok((whole(cursor, read_command)?, true)),
            Form::Points { db, runs } => {
                let run = runs.next_run()?.expect("the last run ends the changes");
                Ok((Change::Points(AddedPoints::of(*db, run)), runs.is_empty()))
            }
            Form::Flawed(error) => Err(error.clone()),
        }
    }
}

/// Returns the database of a record of points, and their decoder.
pub(crate) fn points_of<'a>(record: &Record<'a>) -> Result<(u8, PointsDecoder<'a>), ApplyError> {
    let mut cursor = Cursor::new(record.payload);
    let db = cursor.u8().ok_or_else(|| cursor.malformed("the database is missing"))?;
    check_database(&cursor, db)?;
    Ok((db, PointsDecoder::new(cursor, record.time_us)))
}

impl<'a> Iterator for Changes<'a> {
    type Item = Result<Change<'a>, ApplyError>;

    /// The next change. Nothing follows an error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let read = self.read();
        self.has_ended = read.as_ref().map_or(true, |(_, is_last)| *is_last);
        Some(read.map(|(change, _)| change))
    }
}

/// Reads a change that must take all remaining bytes.
fn whole<'a>(
    cursor: &mut Cursor<'a>,
    read: fn(&mut Cursor<'a>) -> Result<Change<'a>, ApplyError>,
) -> Result<Change<'a>, ApplyError> {
    let change = read(cursor)?;
    cursor.expect_end().map(|()| change)
}

fn read_command<'a>(cursor: &mut Cursor<'a>) -> Result<Change<'a>, ApplyError> {
    let logged = LoggedCommand::decode(cursor)
        .ok_or_else(|| cursor.malformed("a command or its argument is cut off"))?;
    if logged.id == ACKNOWLEDGEMENT {
        return Ok(Change::Acknowledged { args: logged.args });
    }
    let command = command::by_id(logged.id).ok_or(ApplyError::UnknownCommand(logged.id))?;
    let (db, mut args) = (logged.db, logged.args);
    args.insert(0, command.called().as_bytes());
    let (name, longest) = (command.name, args.iter().map(|arg| arg.len()).max());
    if !command.is(flags::WRITE) {
        return Err(cursor.malformed(format!("command '{name}' changes nothing, and is logged")));
    }
    if !command.takes(args.len()) {
        let count = args.len() - 1;
        return Err(cursor.malformed(format!("command '{name}' does not take {count} arguments")));
    }
    match command.id {
        once::NOTE_ID if db != SESSIONS => {
            return Err(cursor.malformed(format!("sessions are in database {SESSIONS}, not {db}")));
        }
        SET_ID | DELETE_ID if db != LIBRARIES => {
            return Err(cursor.malformed(format!("libraries are in database {LIBRARIES}, not {db}")));
        }
        once::NOTE_ID | SET_ID | DELETE_ID => {}
        _ => check_database(cursor, db)?,
    }
    if let Some(longest) = longest.filter(|longest| *longest > MAX_BYTES) {
        return Err(
            cursor.malformed(format!("an argument has {longest} bytes, and the limit is {MAX_BYTES}"))
        );
    }
    Ok(Change::Command { command, db, args })
}

fn read_expiry<'a>(cursor: &mut Cursor<'a>) -> Result<Change<'a>, ApplyError> {
    let db = cursor.u8().ok_or_else(|| cursor.malformed("the database is missing"))?;
    if db != SESSIONS {
        check_database(cursor, db)?;
    }
    let mut keys = Vec::new();
    while !cursor.is_empty() {
        keys.push(cursor.bytes().ok_or_else(|| cursor.malformed("a key is cut off"))?);
    }
    Ok(Change::Expired { db, keys })
}

/// Refuses the number of a database that clients cannot select.
pub(crate) fn check_database(cursor: &Cursor<'_>, db: u8) -> Result<(), ApplyError> {
    if usize::from(db) < DATABASES {
        return Ok(());
    }
    Err(cursor.malformed(format!("there is no database {db}: the last one is {}", DATABASES - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::find;
    use crate::persist::added_points::EqualCommand;
    use crate::persist::record::{encode_acknowledgement, encode_command, put_bytes};
    use proptest::prelude::*;
    use tidemark_log::Lsn;

    fn record(kind: u8, payload: &[u8]) -> Record<'_> {
        Record { lsn: Lsn(7), time_us: 1, kind, payload }
    }

    fn command(line: &str) -> Vec<u8> {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let mut bytes = Vec::new();
        encode_command(&mut bytes, 3, find(words[0]).expect("a command").id, &words[1..]);
        bytes
    }

    /// The changes of a record as lines, or the error that ends them.
    fn read(kind: u8, payload: &[u8]) -> Option<Vec<String>> {
        let text = |words: &[&[u8]]| words.join(&b' ').escape_ascii().to_string();
        let lines = Changes::of(&record(kind, payload))?.map(|change| match change {
            Ok(Change::Command { db, args, .. }) => format!("{db} {}", text(&args)),
            Ok(Change::Expired { db, keys }) => format!("{db} expired {}", text(&keys)),
            Ok(Change::Acknowledged { args }) => format!("acknowledged {}", text(&args)),
            Ok(Change::Points(points)) => {
                let line = |(command, args): EqualCommand| {
                    let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
                    format!("{} {} {}", points.db(), command.name, text(&args))
                };
                points.commands().into_iter().map(line).collect::<Vec<_>>().join("; ")
            }
            Err(error) => error.to_string(),
        });
        Some(lines.collect())
    }

    fn change(payload: &[u8]) -> Change<'_> {
        Changes::of(&record(kind::COMMAND, payload))
            .and_then(|mut all| all.next())
            .expect("one")
            .expect("a change")
    }

    #[test]
    fn every_kind_of_record_about_data_is_read() {
        let one = |line: &str| vec![line.to_owned()];
        assert_eq!(read(kind::COMMAND, &command("SET k v")), Some(one("3 set k v")));
        let mut transaction = Vec::new();
        put_bytes(&mut transaction, &command("SET k v"));
        put_bytes(&mut transaction, &command("DEL a b"));
        let both = vec!["3 set k v".to_owned(), "3 del a b".to_owned()];
        assert_eq!(read(kind::TRANSACTION, &transaction), Some(both));
        assert_eq!(read(kind::TRANSACTION, b""), Some(Vec::new()));
        let mut acknowledgement = Vec::new();
        encode_acknowledgement(&mut acknowledgement, b"name", Lsn(9));
        assert_eq!(read(kind::COMMAND, &acknowledgement), Some(one("acknowledged name 9")));
        assert_eq!(read(kind::EXPIRY, b"\x02\x01a\x02bc"), Some(one("2 expired a bc")));
    }

    #[test]
    fn records_about_watched_reads_and_unknown_ones_are_no_changes() {
        for kind in [kind::WATCH, kind::UNWATCH, kind::NAMED, kind::UNNAMED, kind::WAKE, kind::TICK, 200] {
            assert_eq!(read(kind, b"anything"), None);
        }
    }

    #[test]
    fn what_is_no_change_is_an_error_and_ends_the_record() {
        let mut cut_off = Vec::new();
        put_bytes(&mut cut_off, &command("SET k v"));
        put_bytes(&mut cut_off, &command("DEL a b")[..6]);
        for (kind, payload, errors) in [
            (kind::COMMAND, Vec::new(), "byte 0: a command or its argument is cut off"),
            (kind::EXPIRY, Vec::new(), "byte 0: the database is missing"),
            (kind::COMMAND, command("GET k"), "byte 6: command 'get' changes nothing, and is logged"),
            (kind::COMMAND, command("SET k"), "byte 6: command 'set' does not take 1 arguments"),
            (
                kind::COMMAND,
                [command("SET k v"), vec![0]].concat(),
                "byte 8: 1 bytes are left behind the last field",
            ),
            (
                kind::COMMAND,
                [&[200], &command("SET k v")[1..]].concat(),
                "byte 8: there is no database 200: the last one is 15",
            ),
            (kind::TRANSACTION, vec![9, 1], "byte 1: a command is cut off"),
            (kind::EXPIRY, vec![200, 1, b'k'], "byte 1: there is no database 200: the last one is 15"),
            (kind::EXPIRY, vec![0, 9, b'k'], "byte 2: a key is cut off"),
        ] {
            let malformed = format!("the bytes are malformed at {errors}");
            assert_eq!(read(kind, &payload), Some(vec![malformed]), "{payload:?}");
        }
        let errors = read(kind::TRANSACTION, &cut_off).expect("it is about data");
        assert_eq!(errors[0], "3 set k v");
        assert_eq!(errors[1], "the bytes are malformed at byte 16: a command or its argument is cut off");
        assert_eq!(errors.len(), 2, "nothing is read behind an error");
        let unknown = ApplyError::UnknownCommand(65_000).to_string();
        assert_eq!(read(kind::COMMAND, &[0, 0xe8, 0xfd, 0]), Some(vec![unknown]));
    }

    #[test]
    fn a_change_touches_the_keys_that_it_writes() {
        let touches = |line: &str, wanted: &str| {
            change(&command(line)).touches(|key| key.starts_with(wanted.as_bytes()))
        };
        assert!(touches("SET user:1 v", "user:"));
        assert!(!touches("SET user:1 other:", "other:"), "a value is no key");
        assert!(touches("MSET a 1 user:1 2", "user:"));
        assert!(touches("SUNIONSTORE into one other", "into"));
        assert!(!touches("SUNIONSTORE into one other", "o"), "they are only read");
        assert!(!touches("COPY one other", "one"));
        assert!(touches("COPY one other", "other"));
        assert!(touches("RENAME one other", "one") && touches("RENAME one other", "other"));
        assert!(touches("FLUSHALL", "whatever"));
    }

    #[test]
    fn some_commands_reach_other_databases() {
        for (line, reaches) in [
            ("FLUSHALL", true),
            ("SWAPDB 0 1", true),
            ("MOVE k 1", true),
            ("FLUSHDB", false),
            ("SET k v", false),
        ] {
            assert_eq!(change(&command(line)).reaches_other_databases(), reaches, "{line}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn any_payload_is_read_or_refused(
            kind in 1..4_u8,
            payload in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            let errors = Changes::of(&record(kind, &payload)).expect("data").filter(Result::is_err).count();
            prop_assert!(errors <= 1);
        }
    }
}
