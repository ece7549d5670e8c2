//! Making series and changing what they were made with.

use super::errors;
use super::options::{Also, Options};
use crate::context::{Context, Keys};
use crate::error::CommandError;
use crate::keyspace::{Deadline, Payload};
use crate::value::{Definition, TimeSeries, TypedValue};

pub(super) fn create(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let options = Options::parse(args, 2, Also::Nothing)?;
    if ctx.keys.exists(args[1]) {
        return Err(errors::KEY_EXISTS);
    }
    put(ctx.keys, args[1], TimeSeries::new(options.definition()));
    ctx.keys.changed(args[1], "ts.create");
    ctx.reply.ok();
    Ok(())
}

/// Puts a series under a key that does not exist.
pub(super) fn put(keys: &mut Keys<'_>, key: &[u8], series: TimeSeries) {
    keys.set(key, Payload::Object(Box::new(series.into_object())), Deadline::Clear);
    // What is reported next may be the first points alone.
    keys.series_came(key);
}

/// Returns a series, or the error for a key that has none.
pub(super) fn series<'k>(keys: &'k Keys<'_>, key: &[u8]) -> Result<&'k TimeSeries, CommandError> {
    keys.read::<TimeSeries>(key)?.ok_or(errors::NO_SERIES)
}

pub(super) fn alter(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let options = Options::parse(args, 2, Also::Nothing)?;
    let old = series(ctx.keys, args[1])?.definition();
    let new = options.alter(old)?;
    if new != *old {
        redefine(ctx.keys, args[1], new)?;
        ctx.keys.changed(args[1], "ts.alter");
    }
    ctx.reply.ok();
    Ok(())
}

fn redefine(keys: &mut Keys<'_>, key: &[u8], definition: Definition) -> Result<(), CommandError> {
    keys.set_labels(key, definition.labels.clone());
    keys.update(key, |series: &mut TimeSeries| series.redefine(definition))?;
    Ok(())
}
