//! Sessions of `ONCE`, which are in a database of their own.

use super::Keys;
use crate::error::CommandError;
use crate::keyspace::{Entry, Payload, SESSIONS, hash};
use crate::value::{NumberedAnswer, Object, OnceSession, SESSION_LIFE_MS, TypedValue};

impl Keys<'_> {
    /// Returns a session; `None` if there is none or its time is over. Its shard is locked.
    pub(crate) fn session(&self, name: &[u8]) -> Option<&OnceSession> {
        let entry = self.shard(name).database(usize::from(SESSIONS)).get(hash(name), name)?;
        entry.object().and_then(OnceSession::from_object).filter(|_| self.is_there(entry))
    }

    /// Notes what was executed under a number of a session, which is created if there is none. The
    /// database of sessions is selected. Returns `false`, with nothing noted, if the number is not new.
    ///
    /// Announces nothing: clients do not see the database.
    pub(crate) fn note_once(&mut self, name: &[u8], executed: NumberedAnswer) -> Result<bool, CommandError> {
        self.drop_expired(name);
        let (hash, clock) = (hash(name), self.clock());
        let ends_at = self.now_ms().saturating_add(SESSION_LIFE_MS);
        let database = self.database_mut(name);
        let is_new = match database.get_mut(hash, name).map(Entry::object_mut) {
            None => {
                let mut session = OnceSession::default();
                let is_new = session.note(executed);
                let entry = Entry::new(name, Payload::Object(Box::new(session.into_object())), Some(ends_at));
                entry.touch(clock);
                database.insert(hash, entry);
                is_new
            }
            Some(Some(Object::OnceSession(session))) => {
                let is_new = session.note(executed);
                if is_new {
                    database.set_deadline(hash, name, Some(ends_at));
                }
                is_new
            }
            Some(_) => return Err(CommandError::WrongType),
        };
        if is_new {
            self.effects.changed = true;
            self.note_deadline(ends_at);
        }
        Ok(is_new)
    }
}
