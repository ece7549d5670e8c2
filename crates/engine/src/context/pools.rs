//! Pools among the keys.

use super::keys::Keys;
use crate::error::CommandError;
use crate::keyspace::hash;
use crate::value::Pool;
use crate::value::pool::{Changed, Inner, PoolDurability};
use tidemark_pool::Refusal;

/// What the log has of a change besides its events: times and chains. Bytes.
const FRAME_BYTES: usize = 4 << 10;

impl Keys<'_> {
    /// Changes the pool at a key, and logs what was done; `None` if there is no key. `event_bytes` is what the log takes at most of what
    /// the change itself does, and `event` what is said of it.
    pub(crate) fn change_pool<R>(
        &mut self,
        key: &[u8],
        event: &'static str,
        event_bytes: usize,
        change: impl FnOnce(&mut Inner) -> Result<R, Refusal>,
    ) -> Result<Option<R>, CommandError> {
        let (now_us, bytes) = (self.now_us(), key.len() + FRAME_BYTES + event_bytes);
        let left = self.left_to_log_instead();
        let changed = self.update(key, |pool: &mut Pool| {
            if bytes + pool.overdue_bytes(now_us) > left {
                return Err(CommandError::TooLong);
            }
            let before = pool.inner().next_draw();
            let changed = pool.change(now_us, change);
            Ok((changed, pool.inner().next_draw() - before, pool.durability()))
        })?;
        let Some((changed, draws, durability)) = changed.transpose()? else { return Ok(None) };
        let changed = changed.map_err(|refusal| {
            self.shard_mut(key).tally_mut().count_refusal();
            refused(&refusal)
        })?;
        Ok(Some(self.keep_pool(key, event, draws, durability, changed)))
    }

    /// Does some of what time has brought to the pool at a key, and logs it. Says how many reservations have ended.
    pub(crate) fn let_time_pass(&mut self, key: &[u8]) -> Result<usize, CommandError> {
        let now_us = self.now_us();
        let changed = self.update(key, |pool: &mut Pool| (pool.let_time_pass(now_us), pool.durability()))?;
        let Some((changed, durability)) = changed else { return Ok(0) };
        Ok(self.keep_pool(key, "pool_expire", 0, durability, changed))
    }

    /// Logs what a change of a pool has come to, and says it to whom it concerns.
    fn keep_pool<R>(
        &mut self,
        key: &[u8],
        event: &'static str,
        draws: u64,
        durability: PoolDurability,
        changed: Changed<R>,
    ) -> R {
        let Changed { made, frame } = changed;
        if durability == PoolDurability::Always {
            self.make_durable();
        }
        if let Some(frame) = frame {
            self.shard_mut(key).tally_mut().count_draws(draws);
            self.log_instead("pool.step", &[key, &frame]);
            self.list_pool(key);
            self.changed(key, event);
        } else {
            // That nothing had to be done tells of what was done before.
            self.effects.tells_logged = true;
        }
        made
    }

    /// Has the pool at a key looked at when time changes it next.
    pub(crate) fn list_pool(&mut self, key: &[u8]) {
        let db = usize::from(self.db());
        if let Some(due_ms) = self.shard_mut(key).database_mut(db).list_pool(hash(key), key) {
            self.note_deadline(due_ms);
        }
    }
}

/// What a client hears of a refusal: a word that programs can match on, and why.
pub(crate) fn refused(refusal: &Refusal) -> CommandError {
    let code = match refusal {
        Refusal::Empty
        | Refusal::EmptyUntil { .. }
        | Refusal::NotSoMany { .. }
        | Refusal::NotSoManyItems { .. } => "EMPTY",
        Refusal::Limited { .. } | Refusal::MoreThanLimit { .. } => "LIMITED",
        Refusal::UnknownItem { .. } => "NOITEM",
        Refusal::Ended { .. } => "ENDED",
        Refusal::NoReservation { .. } => "NORESERVATION",
        _ => "ERR",
    };
    CommandError::Text(format!("{code} {refusal}").into())
}
