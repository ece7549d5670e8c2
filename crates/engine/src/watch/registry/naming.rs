//! Creation, acknowledgement and end of named subscriptions, each by a record.

use crate::command::parse;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::persist::apply_error::{ApplyError, Malformed, shown};
use crate::persist::record::{self, Cursor, kind};
use crate::watch::guarantee::Guarantee;
use crate::watch::registry::named::{
    Acknowledged, Acknowledgement, LockedNames, Named, check_name, encode, insert, look, remove, set,
};
use std::sync::atomic::Ordering;
use tidemark_log::{Lsn, Room};

/// Most bytes of a name's record besides the name.
const RECORD_BYTES: usize = 64;

impl Engine {
    /// Limits the number of named subscriptions.
    pub fn limit_names(&self, most: usize) {
        self.registry().names.max.store(most, Ordering::Relaxed);
    }

    /// Returns the named subscription of a name.
    pub fn named(&self, name: &[u8]) -> Option<Named> {
        self.registry().names.lock().get(name).cloned()
    }

    /// Returns all named subscriptions, in byte order of their names.
    pub fn all_named(&self) -> Vec<(Box<[u8]>, Named)> {
        let names = self.registry().names.lock();
        names.iter().map(|(name, named)| (name.clone(), named.clone())).collect()
    }

    /// Names a subscription, with a record. The query is then kept, with or without listeners.
    pub fn name_subscription(&self, name: &[u8], named: &Named, now_us: u64) -> Result<Lsn, CommandError> {
        check_name(name)?;
        self.check_writable()?;
        let mut room = Room::NONE;
        self.make_room(name.len() + RECORD_BYTES, &mut room)?;
        // While the registry is locked, the query cannot be removed before its name is in the log.
        let queries = self.registry().lock();
        let mut names = self.registry().names.lock();
        if names.contains_key(name) {
            return Err(CommandError::text("ERR there is a subscription of that name"));
        }
        self.registry().names.admit(names.len())?;
        if queries.of_id(named.query.id).is_none() {
            return Err(CommandError::text("ERR the read is not watched any more; watch it again"));
        }
        let lsn = self
            .log()
            .append_into(room, now_us, kind::NAMED, |into| encode(name, named, into))
            .map_err(|error| CommandError::LogFailed(error.to_string()))?;
        names.note_logged(lsn);
        insert(&mut names, name, named.clone());
        Ok(lsn)
    }

    /// Ends a name, with a record. Returns the record and what has ended, if the name existed. The
    /// query is then kept no longer than others.
    pub fn end_named(&self, name: &[u8], now_us: u64) -> Result<Option<(Lsn, Named)>, CommandError> {
        self.check_writable()?;
        let mut room = Room::NONE;
        self.make_room(name.len() + RECORD_BYTES, &mut room)?;
        let mut names = self.registry().names.lock();
        let Some(named) = names.get(name).cloned() else { return Ok(None) };
        let encode = |into: &mut Vec<u8>| record::put_bytes(into, name);
        let lsn = self
            .log()
            .append_into(room, now_us, kind::UNNAMED, encode)
            .map_err(|error| CommandError::LogFailed(error.to_string()))?;
        names.note_logged(lsn);
        let was_there = remove(&mut names, name, now_us);
        assert!(was_there, "the name that record {lsn} ends was there under the same lock");
        Ok(Some((lsn, named)))
    }

    /// Moves a name's position, with a record.
    pub fn acknowledge(&self, done: Acknowledgement<'_>, now_us: u64) -> Result<Acknowledged, CommandError> {
        self.move_position(done, None, now_us)
    }

    /// Does the same as [`Engine::acknowledge`] if the position is still `from`: of two claimants
    /// of the same emissions, one succeeds.
    pub fn claim(
        &self,
        done: Acknowledgement<'_>,
        from: Lsn,
        now_us: u64,
    ) -> Result<Acknowledged, CommandError> {
        self.move_position(done, Some(from), now_us)
    }

    fn move_position(
        &self,
        done: Acknowledgement<'_>,
        from: Option<Lsn>,
        now_us: u64,
    ) -> Result<Acknowledged, CommandError> {
        self.check_writable()?;
        let mut room = Room::NONE;
        self.make_room(done.name.len() + RECORD_BYTES, &mut room)?;
        let mut names = self.registry().names.lock();
        let looked = look(&names, done, (self.log(), self.applied()));
        if !matches!(looked, Acknowledged::Moved(_)) {
            return Ok(looked);
        }
        if let Some(named) =
            names.get(done.name).filter(|named| from.is_some_and(|from| from != named.position))
        {
            return Ok(Acknowledged::Before(named.position));
        }
        let encode = |into: &mut Vec<u8>| record::encode_acknowledgement(into, done.name, done.lsn);
        let lsn = self
            .log()
            .append_into(room, now_us, kind::COMMAND, encode)
            .map_err(|error| CommandError::LogFailed(error.to_string()))?;
        names.note_logged(lsn);
        let was_there = set(&mut names, done);
        assert!(was_there, "the name whose position record {lsn} moves was there under the same lock");
        Ok(Acknowledged::Moved(lsn))
    }

    /// Applies the record that creates a name.
    pub(crate) fn apply_named(&self, bytes: &mut Cursor<'_>) -> Result<(), ApplyError> {
        let start = bytes.offset();
        let (name, named) = self.decode_named(bytes).ok_or_else(|| {
            bytes.malformed(format!(
                "the named subscription that begins at byte {start} cannot be read to its end"
            ))
        })?;
        let mut names = self.registry().names.lock();
        if names.contains_key(name) {
            return Err(bytes.malformed(format!("the subscription {} is there twice", shown(name))));
        }
        insert(&mut names, name, named);
        Ok(())
    }

    /// Applies the record that ends a name.
    pub(crate) fn apply_unnamed(&self, time_us: u64, bytes: &mut Cursor<'_>) -> Result<(), ApplyError> {
        let name = bytes.bytes().ok_or_else(|| bytes.malformed("the name that ends is missing"))?;
        if remove(&mut self.registry().names.lock(), name, time_us) {
            return Ok(());
        }
        Err(bytes.malformed(format!("there is no subscription {}", shown(name))))
    }

    /// Applies a logged acknowledgement. `args` excludes the command's name.
    pub(crate) fn apply_acknowledgement(&self, args: &[&[u8]]) -> Result<(), ApplyError> {
        let [name, lsn] = args else {
            let count = args.len();
            return Err(
                Malformed::of(format!("an acknowledgement has {count} arguments in place of 2")).into()
            );
        };
        let number = parse::canonical_integer(lsn).and_then(|lsn| u64::try_from(lsn).ok());
        let Some(lsn) = number.map(Lsn) else {
            return Err(Malformed::of(format!("{} is acknowledged, which is no LSN", shown(lsn))).into());
        };
        if set(&mut self.registry().names.lock(), Acknowledgement { name, lsn }) {
            return Ok(());
        }
        Err(Malformed::of(format!("there is no subscription {}", shown(name))).into())
    }

    /// Loads the names in a frame of a snapshot. To be called after the queries are loaded.
    pub fn load_names(&self, frame: &[u8]) -> Result<(), ApplyError> {
        let mut bytes = Cursor::new(frame);
        while !bytes.is_empty() {
            self.apply_named(&mut bytes)?;
        }
        Ok(())
    }

    fn decode_named<'a>(&self, bytes: &mut Cursor<'a>) -> Option<(&'a [u8], Named)> {
        let name = bytes.bytes().filter(|name| check_name(name).is_ok())?;
        let query = self.query(Lsn(bytes.varint()?))?;
        let (base, position) = (bytes.varint()?, Lsn(bytes.varint()?));
        let guarantee = Guarantee::decode(bytes.u8()?)?;
        let has_begun = bytes.u8()? != 0;
        Some((name, Named { query, base, position, has_begun, guarantee }))
    }
}

/// The acknowledgements of a transaction. All names stay locked from the check until the record is
/// in the log.
pub(crate) struct Acknowledging<'e, 'a> {
    names: LockedNames<'e>,
    done: &'a [Acknowledgement<'a>],
}

/// Why the acknowledgements of a transaction, and so the transaction, are not executed.
#[derive(Debug)]
pub(crate) enum NotAcknowledged {
    /// A position is already there: the transaction was executed before.
    Before,
    Refused(CommandError),
}

impl<'e, 'a> Acknowledging<'e, 'a> {
    /// Checks that all acknowledgements are possible; `None` if there are none.
    pub(crate) fn begin(
        engine: &'e Engine,
        done: &'a [Acknowledgement<'a>],
    ) -> Result<Option<Self>, NotAcknowledged> {
        if done.is_empty() {
            return Ok(None);
        }
        let names = engine.registry().names.lock();
        for one in done {
            let text = match look(&names, *one, (engine.log(), engine.applied())) {
                Acknowledged::Moved(_) => continue,
                Acknowledged::Before(_) => return Err(NotAcknowledged::Before),
                Acknowledged::Beyond(head) => format!("INVALID_SEQUENCE the log ends at LSN {head}"),
                Acknowledged::Unknown => {
                    "SUBSCRIPTION_NOT_FOUND there is no subscription of that name".to_owned()
                }
            };
            return Err(NotAcknowledged::Refused(CommandError::Text(text.into())));
        }
        Ok(Some(Self { names, done }))
    }

    /// Appends the acknowledgements to the payloads of the transaction's record.
    pub(crate) fn encode(&self, payloads: &mut Vec<Vec<u8>>) {
        for one in self.done {
            let mut payload = Vec::new();
            record::encode_acknowledgement(&mut payload, one.name, one.lsn);
            payloads.push(payload);
        }
    }

    /// Moves the positions, after the record is in the log.
    pub(crate) fn finish(mut self, lsn: Lsn) {
        self.names.note_logged(lsn);
        for one in self.done {
            let was_there = set(&mut self.names, *one);
            assert!(was_there, "the name whose position record {lsn} moves was there under the same lock");
        }
    }
}
