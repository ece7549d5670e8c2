//! Access to pools.

use super::Keys;
use crate::error::CommandError;
use crate::keyspace::hash;
use crate::value::Pool;
use crate::value::pool::{Changed, Inner, PoolDurability};
use tidemark_pool::Refusal;

/// Maximum bytes of a frame besides its events: times and chains.
const FRAME_BYTES: usize = 4 << 10;

impl Keys<'_> {
    /// Changes the pool at a key and logs the change; `None` if the key does not exist.
    /// `event_bytes` is the maximum size of the change in the log, and `event` the name of its
    /// keyspace event.
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

    /// Applies some of the pool's overdue expirations and schedules, and logs them. Returns how
    /// many reservations ended.
    pub(crate) fn let_time_pass(&mut self, key: &[u8]) -> Result<usize, CommandError> {
        let now_us = self.now_us();
        let changed = self.update(key, |pool: &mut Pool| (pool.let_time_pass(now_us), pool.durability()))?;
        let Some((changed, durability)) = changed else { return Ok(0) };
        Ok(self.keep_pool(key, "pool_expire", 0, durability, changed))
    }

    /// Logs a change of a pool and publishes it.
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
            // That nothing had to be done shows earlier changes, so the reply depends on them.
            self.effects.reveals_logged = true;
        }
        made
    }

    /// Schedules the pool's next time-driven change.
    pub(crate) fn list_pool(&mut self, key: &[u8]) {
        let db = usize::from(self.db());
        if let Some(due_ms) = self.shard_mut(key).database_mut(db).list_pool(hash(key), key) {
            self.note_deadline(due_ms);
        }
    }
}

/// The error reply for a refusal: a code that programs can match on, and the reason.
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
