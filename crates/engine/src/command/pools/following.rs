//! Replay of logged pool records.

use super::no_pool;
use crate::context::Context;
use crate::error::CommandError;
use crate::persist::record::Cursor;
use crate::value::{Pool, Value};

/// `pool.load key image`: a pool was created.
pub(super) fn load(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let mut image = Cursor::new(args[2]);
    let pool = Pool::decode(&mut image).filter(|_| image.is_empty());
    let pool = pool.ok_or_else(|| CommandError::text("ERR the record is no pool's image"))?;
    ctx.keys.put(args[1], pool);
    ctx.keys.list_pool(args[1]);
    ctx.keys.changed(args[1], "pool_create");
    Ok(())
}

/// `pool.step key frame`: a pool has changed.
pub(super) fn step(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let followed = ctx.keys.update(args[1], |pool: &mut Pool| pool.follow(args[2]))?;
    followed.ok_or_else(no_pool)?.map_err(|error| CommandError::Text(format!("ERR {error}").into()))?;
    ctx.keys.list_pool(args[1]);
    ctx.keys.changed(args[1], "pool_draw");
    Ok(())
}
