//! Appends the changes of commands to the log while their shards are locked, so that log order
//! equals execution order for every key.

use crate::command;
use crate::context::{Effects, Keys, RareEffects, keep_encoder};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::execute::call::Call;
use crate::persist::points::PointsEncoder;
use crate::persist::record::{self, kind};
use crate::wire::reply::Reply;
use tidemark_log::{Lsn, Room};

impl Engine {
    /// Appends a command's change to the log. The caller holds the locks of its shards.
    #[inline]
    pub(crate) fn log_effects(
        &self,
        call: &Call<'_>,
        effects: &Effects,
        room: Room<'_>,
        reply: &mut Reply,
        mark: usize,
    ) -> Option<Lsn> {
        match effects.rare() {
            Some(rare) => self.log_rare_effects(call, effects, rare, room, reply, mark),
            None if effects.changed => self.log_command(call, room, reply, mark),
            None => None,
        }
    }

    /// As [`Engine::log_effects`], for a command whose changes are points.
    pub(crate) fn log_points(
        &self,
        call: &Call<'_>,
        points: Box<PointsEncoder>,
        effects: &Effects,
        room: Room<'_>,
        reply: &mut Reply,
        mark: usize,
    ) -> Option<Lsn> {
        assert_eq!(
            effects.changed,
            !points.is_empty(),
            "'{}' changes series by points alone",
            call.command.name
        );
        if points.is_empty() {
            keep_encoder(points);
            return self.log_effects(call, effects, room, reply, mark);
        }
        let logged = self.append_points(points, room, call.now_us);
        if let Err(error) = &logged {
            reply.truncate(mark);
            reply.error(error);
        }
        logged.ok()
    }

    /// Appends points. If the log failed after admission, the points are in memory only, and admission
    /// refuses every later write.
    pub(crate) fn append_points(
        &self,
        mut points: Box<PointsEncoder>,
        room: Room<'_>,
        now_us: u64,
    ) -> Result<Lsn, CommandError> {
        let payload = points.finish();
        let result =
            self.log().append_into(room, now_us, kind::POINTS, |into| into.extend_from_slice(payload));
        keep_encoder(points);
        result.map_err(|error| {
            self.set_ahead_of_log();
            CommandError::LogFailed(error.to_string())
        })
    }

    /// As [`Engine::log_effects`], for a command that may have removed expired keys or is logged as
    /// other commands.
    #[cold]
    fn log_rare_effects(
        &self,
        call: &Call<'_>,
        effects: &Effects,
        rare: &RareEffects,
        room: Room<'_>,
        reply: &mut Reply,
        mark: usize,
    ) -> Option<Lsn> {
        if !rare.recorded.is_empty() {
            return self.append_transaction(&rare.recorded, room, call.now_us, reply, mark);
        }
        if effects.changed && rare.rewritten.is_empty() {
            let result = self.log().append_into(room, call.now_us, kind::COMMAND, |into| {
                encode_chosen(into, call, rare);
            });
            return self.appended(result, reply, mark);
        }
        if effects.changed {
            let mut payloads = Vec::new();
            encode_effects(call, effects, &mut payloads);
            return self.append_transaction(&payloads, room, call.now_us, reply, mark);
        }
        let lost = rare.rewritten.len();
        assert!(
            lost == 0,
            "'{}' has {lost} commands to log and says that it has changed nothing",
            call.command.name
        );
        if rare.expired.is_empty() {
            return None;
        }
        let expired = rare.expired.iter().map(Vec::as_slice);
        let encode = |into: &mut Vec<u8>| encode_expiry(into, call.db, expired);
        let result = self.log().append_into(room, call.now_us, kind::EXPIRY, encode);
        self.appended(result, reply, mark)
    }

    // Of its own, so that a command that logs nothing does not save registers for it.
    #[inline(never)]
    fn log_command(&self, call: &Call<'_>, room: Room<'_>, reply: &mut Reply, mark: usize) -> Option<Lsn> {
        let result = self.log().append_into(room, call.now_us, kind::COMMAND, |into| {
            record::encode_command(into, call.db, call.command.id, arguments(call));
        });
        self.appended(result, reply, mark)
    }

    pub(crate) fn append_transaction(
        &self,
        payloads: &[Vec<u8>],
        room: Room<'_>,
        now_us: u64,
        reply: &mut Reply,
        mark: usize,
    ) -> Option<Lsn> {
        let result = match payloads {
            [single] => {
                self.log().append_into(room, now_us, kind::COMMAND, |into| into.extend_from_slice(single))
            }
            several => self.log().append_into(room, now_us, kind::TRANSACTION, |into| {
                several.iter().for_each(|payload| record::put_bytes(into, payload));
            }),
        };
        self.appended(result, reply, mark)
    }

    /// Handles the result of an append. If the log failed after admission, the change is in memory
    /// only: the reply, which begins at `mark`, becomes an error, and admission refuses every later
    /// write.
    fn appended(
        &self,
        result: Result<Lsn, tidemark_log::AppendError>,
        reply: &mut Reply,
        mark: usize,
    ) -> Option<Lsn> {
        match result {
            Ok(lsn) => Some(lsn),
            Err(error) => {
                self.set_ahead_of_log();
                reply.truncate(mark);
                reply.error(&CommandError::LogFailed(error.to_string()));
                None
            }
        }
    }

    /// Appends the changes of serving a client, after the change that made it possible.
    pub(crate) fn log_served(&self, keys: &Keys<'_>, effects: &Effects, reply: &mut Reply) -> Option<Lsn> {
        assert!(
            !effects.changed || effects.rare().is_some_and(|rare| !rare.rewritten.is_empty()),
            "serving has changed something and does not say what to log"
        );
        let mut payloads = Vec::new();
        encode_expired(keys.db(), effects, &mut payloads);
        encode_rewritten(keys.db(), effects, &mut payloads);
        if payloads.is_empty() {
            return None;
        }
        self.append_transaction(&payloads, Room::NONE, keys.now_us(), reply, 0)
    }

    /// Appends the expiry of a key, before the key is removed.
    pub(crate) fn log_expiry(&self, db: u8, key: &[u8], now_us: u64) -> Option<Lsn> {
        let encode = |into: &mut Vec<u8>| encode_expiry(into, db, std::iter::once(key));
        self.log().append_into(Room::NONE, now_us, kind::EXPIRY, encode).ok()
    }
}

/// The arguments that a record holds: all except the name. Those of a subcommand begin with its name.
fn arguments<'a>(call: &Call<'a>) -> &'a [&'a [u8]] {
    &call.args[1..]
}

/// Appends a command with what it has chosen: see [`Keys::log_with`].
fn encode_chosen(into: &mut Vec<u8>, call: &Call<'_>, rare: &RareEffects) {
    let Some((position, chosen)) = &rare.chosen else {
        return record::encode_command(into, call.db, call.command.id, arguments(call));
    };
    let mut args = call.args.to_vec();
    args[*position] = chosen;
    record::encode_command(into, call.db, call.command.id, &args[1..]);
}

pub(crate) fn encode_effects(call: &Call<'_>, effects: &Effects, payloads: &mut Vec<Vec<u8>>) {
    if !effects.changed {
        return encode_expired(call.db, effects, payloads);
    }
    if let Some(rare) = effects.rare()
        && !rare.recorded.is_empty()
    {
        return payloads.extend_from_slice(&rare.recorded);
    }
    if effects.rare().is_none_or(|rare| rare.rewritten.is_empty()) {
        let mut payload = Vec::new();
        match effects.rare() {
            Some(rare) => encode_chosen(&mut payload, call, rare),
            None => record::encode_command(&mut payload, call.db, call.command.id, arguments(call)),
        }
        payloads.push(payload);
    } else {
        encode_expired(call.db, effects, payloads);
        encode_rewritten(call.db, effects, payloads);
    }
}

/// Inside a transaction or before rewritten commands, the removal of expired keys is logged as a
/// `DEL`.
fn encode_expired(db: u8, effects: &Effects, payloads: &mut Vec<Vec<u8>>) {
    let expired = effects.rare().map_or(&[][..], |rare| &rare.expired);
    if !expired.is_empty() {
        let keys: Vec<&[u8]> = expired.iter().map(Vec::as_slice).collect();
        payloads.push(encode_named(db, "del", &keys));
    }
}

fn encode_rewritten(db: u8, effects: &Effects, payloads: &mut Vec<Vec<u8>>) {
    for rewritten in effects.rare().map_or(&[][..], |rare| &rare.rewritten) {
        let args: Vec<&[u8]> = rewritten.args.iter().map(Vec::as_slice).collect();
        payloads.push(encode_named(db, rewritten.name, &args));
    }
}

fn encode_named(db: u8, name: &'static str, args: &[&[u8]]) -> Vec<u8> {
    let command = command::find_logged(name).expect("handlers name commands of the table");
    let mut payload = Vec::new();
    record::encode_command(&mut payload, db, command.id, args);
    payload
}

pub(crate) fn encode_expiry<'a>(into: &mut Vec<u8>, db: u8, keys: impl Iterator<Item = &'a [u8]>) {
    into.push(db);
    keys.for_each(|key| record::put_bytes(into, key));
}
