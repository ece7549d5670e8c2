//! HyperLogLogs: estimates of how many distinct elements were added. A value is a string.

use super::parse::is;
use super::{Answer, Command, Group, Handler, KeySpec, Misses, Run, flags::*};
use crate::context::{Context, Keys};
use crate::error::CommandError;
use crate::persist::level;
use crate::value::Text;
use crate::value::hyper_log_log::{self, Encoding, Registers, Sketch};
use crate::watch::touched::Touched;

const fn row(id: u16, name: &'static str, arity: i16, flags: u32, keys: KeySpec, run: Handler) -> Command {
    Command::new(Group::HyperLogLog, id, name, arity, flags, keys, Run::Keys(run)).at_level(level::VALUES)
}

const GROWS: u32 = WRITE | DENYOOM;

const SECOND: KeySpec = KeySpec::Range { first: 2, last: 2, step: 1 };

pub(super) const COMMANDS: &[Command] = &[
    row(30, "pfadd", -2, GROWS | FAST, KeySpec::ONE, pfadd).using(&["RW insert"]).doc(
        "2.8.9",
        "O(N) with N the number of elements",
        "key [element [element ...]]",
        "Adds elements to a HyperLogLog; answers 1 if its estimate may have changed.",
    ),
    row(31, "pfcount", -2, READONLY, KeySpec::REST, pfcount)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .visiting_all()
        .doc(
            "2.8.9",
            "O(N) with N the number of keys, and a large constant",
            "key [key ...]",
            "Estimates how many distinct elements were added to HyperLogLogs, with an error of 0.81 %.",
        ),
    row(32, "pfmerge", -2, GROWS, KeySpec::REST, pfmerge)
        .using(&["RW access insert", "RO access"])
        .missing(Misses::OfWrites)
        .visiting_all()
        .doc(
            "2.8.9",
            "O(N) with N the number of keys, and a large constant",
            "destkey [sourcekey [sourcekey ...]]",
            "Adds to a HyperLogLog what others have.",
        ),
    row(33, "pfdebug", 3, GROWS | ADMIN, SECOND, pfdebug).using(&["RW access"]).doc(
        "2.8.9",
        "O(1), with a large constant",
        "<GETREG | DECODE | ENCODING | TODENSE> key",
        "Shows the registers, the runs or the encoding of a HyperLogLog, or makes it dense.",
    ),
    row(34, "pfselftest", 1, ADMIN, KeySpec::None, pfselftest).doc(
        "2.8.9",
        "O(1): some milliseconds",
        "",
        "Tests HyperLogLogs: their registers, and the error of their estimates.",
    ),
];

/// Returns the sketch of a key, checked.
fn sketch<'k>(keys: &'k Keys<'_>, key: &[u8]) -> Result<Option<Sketch<'k>>, CommandError> {
    keys.string(key)?
        .map(|text| match text {
            Text::Bytes(bytes) => Sketch::of(bytes),
            // Digits have no header.
            Text::Int(..) => Sketch::of(&[]),
        })
        .transpose()
}

/// Returns the bytes of a key's sketch, which has been checked, or of a new one.
fn growing<'k>(
    ctx: &'k mut Context<'_, '_>,
    key: &[u8],
    is_new: bool,
) -> Result<&'k mut Vec<u8>, CommandError> {
    let bytes = ctx.keys.growing_string(key)?;
    if is_new {
        hyper_log_log::create(bytes);
    }
    Ok(bytes)
}

fn pfadd(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let key = args[1];
    let is_new = sketch(ctx.keys, key)?.is_none();
    let bytes = growing(ctx, key, is_new)?;
    let mut changed = is_new;
    for element in &args[2..] {
        changed |= hyper_log_log::add(bytes, element);
    }
    if changed {
        hyper_log_log::invalidate(bytes);
        ctx.keys.changed(key, "pfadd");
    }
    ctx.reply.integer(i64::from(changed));
    Ok(())
}

/// Returns the union of the keys' sketches, and whether one of them is dense.
fn union(keys: &Keys<'_>, names: &[&[u8]]) -> Result<(Registers, bool), CommandError> {
    let (mut union, mut has_dense) = (Registers::zero(), false);
    for key in names {
        if let Some(sketch) = sketch(keys, key)? {
            union.merge(sketch);
            has_dense |= sketch.encoding() == Encoding::Dense;
        }
    }
    Ok((union, has_dense))
}

fn pfcount(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let count = match &args[1..] {
        [key] => sketch(ctx.keys, key)?.map_or(0, Sketch::count),
        keys => union(ctx.keys, keys)?.0.count(),
    };
    ctx.reply.integer(count);
    Ok(())
}

fn pfmerge(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let key = args[1];
    let (union, has_dense) = union(ctx.keys, &args[1..])?;
    let is_new = !ctx.keys.exists(key);
    let bytes = growing(ctx, key, is_new)?;
    if has_dense {
        hyper_log_log::make_dense(bytes);
    }
    hyper_log_log::raise_all(bytes, &union);
    hyper_log_log::invalidate(bytes);
    ctx.keys.changed(key, "pfadd");
    ctx.reply.ok();
    Ok(())
}

/// Makes the sketch of a key dense. Returns whether it was sparse.
fn make_dense(ctx: &mut Context<'_, '_>, key: &[u8]) -> Result<bool, CommandError> {
    let was_sparse = hyper_log_log::make_dense(growing(ctx, key, false)?);
    if was_sparse {
        ctx.keys.changed_unannounced(key, || Touched::Everything);
    }
    Ok(was_sparse)
}

fn pfdebug(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (name, key) = (args[1], args[2]);
    let sketch = sketch(ctx.keys, key)?.ok_or(CommandError::text("ERR The specified key does not exist"))?;
    if is(name, "GETREG") {
        let mut registers = Registers::zero();
        registers.merge(sketch);
        // As in Redis, which reads registers of a dense sketch only.
        make_dense(ctx, key)?;
        ctx.reply.array(registers.iter().len());
        registers.iter().for_each(|value| ctx.reply.integer(i64::from(value)));
    } else if is(name, "DECODE") {
        if sketch.encoding() == Encoding::Dense {
            return Err(CommandError::text("ERR HLL encoding is not sparse"));
        }
        let shown = sketch.shown();
        ctx.reply.bulk(shown.as_bytes());
    } else if is(name, "ENCODING") {
        let encoding = match sketch.encoding() {
            Encoding::Dense => "dense",
            Encoding::Sparse => "sparse",
        };
        ctx.reply.simple(encoding);
    } else if is(name, "TODENSE") {
        let was_sparse = make_dense(ctx, key)?;
        ctx.reply.integer(i64::from(was_sparse));
    } else {
        let text = format!("ERR Unknown PFDEBUG subcommand '{}'", String::from_utf8_lossy(name));
        return Err(CommandError::Text(text.into()));
    }
    Ok(())
}

fn pfselftest(ctx: &mut Context<'_, '_>, _args: &[&[u8]]) -> Result<(), CommandError> {
    let seed = ctx.keys.random();
    hyper_log_log::test(seed)
        .map_err(|failure| CommandError::Text(format!("TESTFAILED {failure}").into()))?;
    ctx.reply.ok();
    Ok(())
}
