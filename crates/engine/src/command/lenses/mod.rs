//! Lenses: series seen through transforms. `TS.` commands that read take a lens for a series.

pub(super) mod rows;

use super::parse::{is, shown};
use super::series::reply_all_labels;
use super::similar::similar;
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::{Deadline, Entry, Payload};
use crate::value::lens::{self, WordError};
use crate::value::{Lens, TypedValue};

const NO_LENS: CommandError = CommandError::text("ERR LENS: there is no such lens");

fn refused(problem: &str) -> CommandError {
    CommandError::Text(format!("ERR LENS: {problem}").into())
}

fn compiled(lens: Result<Lens, WordError>) -> Result<Lens, CommandError> {
    lens.map_err(|error| {
        let WordError::Unknown { name } = &error else { return refused(&error.to_string()) };
        match similar(name, lens::names()).first() {
            Some(similar) => refused(&format!("{error}; did you mean '{similar}'?")),
            None => {
                let names: Vec<&str> = lens::names().collect();
                refused(&format!("{error}; there are + - * / and {}", names.join(", ")))
            }
        }
    })
}

fn create(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (name, source, words) = (args[1], args[2], &args[3..]);
    put(ctx, name, source, words)
}

/// Makes a lens with the source of the first of some lenses, and the transforms of all.
fn compose(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let read = |key: &&[u8]| ctx.keys.read::<Lens>(key)?.ok_or_else(|| no_lens(key));
    let parts = args[2..].iter().map(read).collect::<Result<Vec<&Lens>, CommandError>>()?;
    let source = parts[0].source().to_vec();
    let words: Vec<Vec<u8>> = parts.iter().flat_map(|lens| lens.words()).map(<[u8]>::to_vec).collect();
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    put(ctx, args[1], &source, &words)
}

fn put(ctx: &mut Context<'_, '_>, name: &[u8], source: &[u8], words: &[&[u8]]) -> Result<(), CommandError> {
    if ctx.keys.exists(name) {
        return Err(refused(&format!("the key {} exists already", shown(name))));
    }
    let lens = ctx.keys.see_for(name, source, |unit| compiled(Lens::new(source, words, unit)))?;
    ctx.keys.set(name, Payload::Object(Box::new(lens.into_object())), Deadline::Clear);
    ctx.keys.changed(name, "lens.create");
    ctx.reply.ok();
    Ok(())
}

fn no_lens(key: &[u8]) -> CommandError {
    refused(&format!("there is no lens {}", shown(key)))
}

fn drop(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    for key in &args[1..] {
        ctx.keys.read::<Lens>(key)?.ok_or_else(|| no_lens(key))?;
    }
    let mut dropped = 0;
    for key in &args[1..] {
        // A key may be given twice.
        if ctx.keys.remove(key) {
            ctx.keys.changed(key, "del");
            dropped += 1;
        }
    }
    ctx.reply.integer(dropped);
    Ok(())
}

fn list(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let source = match args {
        [_] => None,
        [_, word, source] if is(word, "SOURCE") => Some(*source),
        _ => return Err(CommandError::Syntax),
    };
    let mut names: Vec<&[u8]> = Vec::new();
    for shard in ctx.keys.shards() {
        let database = shard.database(usize::from(ctx.keys.db()));
        let lenses = database.table().iter().filter(|entry| ctx.keys.is_there(entry)).filter(|entry| {
            let lens = entry.object().and_then(Lens::from_object);
            lens.is_some_and(|lens| source.is_none_or(|source| lens.keys().any(|key| key == source)))
        });
        names.extend(lenses.map(Entry::key));
    }
    names.sort_unstable();
    ctx.reply.array(names.len());
    names.iter().for_each(|name| ctx.reply.bulk(name));
    Ok(())
}

fn info(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let key = args[1];
    let lens = ctx.keys.read::<Lens>(key)?.ok_or(NO_LENS)?;
    let seen = ctx.keys.see(key)?.ok_or(NO_LENS)?;
    let reply = &mut *ctx.reply;
    reply.map(4);
    reply.simple("source");
    reply.bulk(lens.source());
    reply.simple("unit");
    reply.simple(seen.unit().name());
    reply.simple("labels");
    reply_all_labels(reply, lens.labels());
    reply.simple("transforms");
    let steps: Vec<(Vec<&[u8]>, String)> = lens.steps().collect();
    reply.array(steps.len());
    for (words, reads) in steps {
        reply.map(2);
        reply.simple("transform");
        reply.bulk(&words.join(&b' '));
        reply.simple("reads");
        reply.bulk(reads.as_bytes());
    }
    Ok(())
}
