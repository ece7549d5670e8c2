//! Executing requests on a pool, completely or not at all.

use super::error::CallError;
use super::request::{Answer, CHANGES_MAX, Change, Outcome, Request};
use crate::by::By;
use crate::draw::selector::Selector;
use crate::pool::Pool;

/// Executes a request, staged, at a time in microseconds since 1970. Deterministic: the same
/// request on the same pool has the same outcome.
pub(super) fn do_request<S: Selector>(pool: &mut Pool<S>, request: &Request, now_us: u64) -> Outcome {
    let now_ms = now_us / 1000;
    match request {
        Request::Draw => Ok(Answer::Draw(pool.draw_or_refuse()?)),
        Request::DrawMany { count, repeats } => {
            let mut draws = Vec::new();
            pool.draw_many(*count, *repeats, &mut draws)?;
            Ok(Answer::Draws(draws))
        }
        Request::DrawBy { asker, count, repeats } => {
            let mut draws = Vec::new();
            pool.draw_by(&asker.by(now_ms), *count, *repeats, &mut draws)?;
            Ok(Answer::Draws(draws))
        }
        Request::ReserveBy { asker, count, repeats, until_us } => {
            Ok(Answer::Reserved(pool.reserve_by(&asker.by(now_ms), *count, *repeats, *until_us)?))
        }
        Request::Reserve { count, repeats, until_us } => {
            Ok(Answer::Reserved(pool.reserve(*count, *repeats, *until_us)?))
        }
        Request::Confirm { number } => Ok(pool.confirm(*number).map(|()| Answer::Done)?),
        Request::Cancel { number } => Ok(pool.cancel(*number).map(|()| Answer::Done)?),
        Request::GiveBack { id, count } => Ok(pool.give_back(id, *count).map(|()| Answer::Done)?),
        Request::GiveBackBy { user, id, count } => {
            let by = By { user: Some(user), request: None, now_ms };
            Ok(pool.give_back_by(&by, id, *count).map(|()| Answer::Done)?)
        }
        Request::Change(changes) => change(pool, changes).map(|()| Answer::Done),
        Request::BeginEpoch { client_seed, after } => {
            Ok(Answer::Revealed(Box::new(pool.begin_epoch(client_seed, after.clone())?)))
        }
        Request::State { .. } => unreachable!("states are answered before"),
    }
}

/// Makes all changes, or none.
fn change<S: Selector>(pool: &mut Pool<S>, changes: &[Change]) -> Result<(), CallError> {
    if changes.len() > CHANGES_MAX {
        return Err(CallError::TooManyChanges { count: changes.len(), max: CHANGES_MAX });
    }
    let savepoint = pool.savepoint();
    let made = changes.iter().try_for_each(|change| match change {
        Change::Weight { id, weight } => pool.reweight(id, *weight),
        Change::Stock { id, stock } => pool.set_stock(id, *stock),
        Change::Restock { id, units } => pool.restock(id, *units),
        Change::Add(item) => pool.add(item),
        Change::Remove { id } => pool.remove(id),
    });
    made.map_err(|refusal| {
        pool.back_to(savepoint);
        refusal.into()
    })
}
