//! Commands that one client has sent one after the other, run under the same locks and logged in one
//! record.

use crate::command::{KeySpec, flags};
use crate::context::Locked;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::execute::call::Call;
use crate::execute::execution::{Executed, expired_keys};
use crate::execute::locking::Access;
use crate::execute::moment::Moment;
use crate::wire::reply::Reply;
use tidemark_log::Room;

impl Engine {
    /// Runs commands with the flag [`flags::RUNS`], of one database and time, one after the other, and
    /// writes their replies. The log has their changes in one record, and each watched read emits at
    /// most once. Unlike those of a transaction, the commands are independent: each has its own error.
    ///
    /// Returns `None`, with nothing done, if the commands are not admitted together: the caller runs
    /// each.
    ///
    /// # Panics
    /// There are no commands, or one does not have the flag.
    pub fn execute_run(&self, calls: &[Call<'_>], reply: &mut Reply) -> Option<Executed<'_>> {
        let Call { db, now_us, .. } = calls[0];
        let mut room = Room::NONE;
        self.admit_run(calls, &mut room).ok()?;
        // Each names one key.
        let keys = || calls.iter().map(|call| call.args[1]);
        let brings = |locked: &Locked<'_>| calls.iter().any(|call| self.may_bring_selected(locked, call));
        let lock = || {
            let locked = self.lock_reachable(self.lock_keys(keys()), Access::Write, keys, brings);
            self.keys(locked, db, now_us)
        };
        let named = || keys().map(|key| (db, key));
        let mut keys = lock();
        self.expire_first(&mut keys, named, lock);
        self.check_writable().ok()?;
        keys.collect_points();
        let mark = reply.len();
        let (mut ready, mut noted, mut expired) = (Vec::new(), Vec::new(), Vec::new());
        let mut changed = false;
        for call in calls {
            assert!(
                call.command.is(flags::RUNS)
                    && call.command.keys == KeySpec::ONE
                    && call.db == db
                    && call.now_us == now_us,
                "'{}' does not run together with others",
                call.command.name
            );
            keys.with_named(call.args[1], |keys| self.run(call, keys, reply));
            let mut effects = std::mem::take(&mut keys.effects);
            changed |= effects.changed;
            if effects.rare().is_some() {
                let rare = effects.take_rare();
                assert!(
                    rare.rewritten.is_empty() && rare.block.is_none() && rare.rest.is_none(),
                    "'{}' adds points and does nothing else",
                    call.command.name
                );
                ready.extend(rare.ready);
                noted.extend(rare.noted);
            }
            if keys.has_met_expired() {
                expired.extend(expired_keys(&keys, call).into_iter().map(|key| (call, key)));
            }
        }
        let points = keys.take_points().expect("they are collected");
        assert_eq!(changed, !points.is_empty(), "a run changes series by points alone");
        let lsn = if changed {
            let logged = self.append_points(points, room, now_us);
            if let Err(error) = &logged {
                reply.truncate(mark);
                calls.iter().for_each(|_| reply.error(error));
            }
            logged.ok()
        } else {
            crate::context::keep_encoder(points);
            None
        };
        if let Some(lsn) = lsn {
            keys.note_logged(lsn);
        }
        if !noted.is_empty() {
            self.emit(&mut keys, noted, lsn.map(|lsn| Moment::of(lsn, now_us)));
        }
        if keys.events.are_wanted() {
            self.publish_events(&mut keys, lsn, false);
        }
        if ready.is_empty() {
            drop(keys);
        } else {
            self.serve(keys, ready);
        }
        expired.into_iter().for_each(|(call, key)| self.remove_met(call, &[key], None));
        Some(Executed { lsn, ..Executed::default() })
    }

    /// As [`Engine::admit`], for all commands of a run.
    fn admit_run<'e>(&'e self, calls: &[Call<'_>], room: &mut Room<'e>) -> Result<(), CommandError> {
        self.check_writable()?;
        let bytes: usize = calls.iter().map(|call| Self::record_bytes(call.args)).sum();
        if bytes > RUN_BYTES_MAX {
            return Err(CommandError::TooLong);
        }
        self.make_room(bytes, room)
    }
}

/// Most bytes of the commands of a run, so that their locks are held briefly.
const RUN_BYTES_MAX: usize = 1 << 20;
