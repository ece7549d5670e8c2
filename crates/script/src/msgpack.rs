//! `cmsgpack`: values as `MessagePack`.

use crate::library::{Args, Failure, Returned, define, one};
use crate::output::Output;
use crate::state::RunState;
use mlua::{Lua, MultiValue, Result, Table, Value};
use std::rc::Rc;

/// Most tables in each other; what is deeper is packed as nil.
const MAX_DEPTH: usize = 16;
/// Most values in each other that are unpacked.
const MAX_UNPACK_DEPTH: usize = 1_000;

/// Creates the library.
pub(crate) fn library(lua: &Lua, state: &Rc<RunState>) -> Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    table.raw_set("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo")?;
    table.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    let own = Rc::clone(state);
    define(lua, &table, "pack", move |lua, args| {
        if args.len() == 0 {
            return Err("bad argument #0 to 'pack' (MessagePack pack needs input.)".into());
        }
        let mut out = Output::new(&own);
        args.all().iter().try_for_each(|value| pack(value, 0, &mut out))?;
        one(Value::String(lua.create_string(out.finish()?)?))
    })?;
    define(lua, &table, "unpack", |lua, args| unpack(lua, args, i64::MAX, 0, false))?;
    define(lua, &table, "unpack_one", |lua, args| {
        let offset = args.integer_or(lua, 1, 0)?;
        unpack(lua, args, 1, offset, true)
    })?;
    define(lua, &table, "unpack_limit", |lua, args| {
        let (limit, offset) = (args.integer(lua, 1)?, args.integer_or(lua, 2, 0)?);
        unpack(lua, args, limit, offset, true)
    })?;
    Ok(table)
}

fn pack(value: &Value, depth: usize, out: &mut Output<'_>) -> Result<()> {
    if out.has_ended() {
        return Ok(());
    }
    match value {
        Value::Boolean(value) => out.push(if *value { 0xc3 } else { 0xc2 }),
        Value::Integer(integer) => pack_integer(*integer, out),
        Value::Number(number) => pack_number(*number, out),
        Value::String(text) => {
            let text = text.as_bytes();
            pack_head(text.len(), (0xa0, 31), Some(0xd9), 0xda, out);
            out.extend(&text);
        }
        Value::Table(table) if depth < MAX_DEPTH => pack_table(table, depth, out)?,
        _ => out.push(0xc0),
    }
    Ok(())
}

/// Writes a length: in the first byte if it is at most that of `short`, or behind a byte.
fn pack_head(len: usize, short: (u8, usize), in_one: Option<u8>, in_two: u8, out: &mut Output<'_>) {
    if len <= short.1 {
        out.push(short.0 | len as u8);
    } else if let (Some(kind), Ok(len)) = (in_one, u8::try_from(len)) {
        out.extend(&[kind, len]);
    } else if let Ok(len) = u16::try_from(len) {
        out.push(in_two);
        out.extend(&len.to_be_bytes());
    } else {
        out.push(in_two + 1);
        out.extend(&(len as u32).to_be_bytes());
    }
}

#[allow(clippy::float_cmp, reason = "whether the value is the same, to the bit")]
fn pack_number(number: f64, out: &mut Output<'_>) {
    let integer = number as i64;
    if integer as f64 == number && (-9.2e18..9.2e18).contains(&number) {
        return pack_integer(integer, out);
    }
    let single = number as f32;
    if f64::from(single) == number {
        out.push(0xca);
        out.extend(&single.to_be_bytes());
    } else {
        out.push(0xcb);
        out.extend(&number.to_be_bytes());
    }
}

fn pack_integer(integer: i64, out: &mut Output<'_>) {
    let (kind, bytes): (u8, &[u8]) = match integer {
        -32..=0x7f => return out.push(integer as u8),
        0x80..=0xff => (0xcc, &[integer as u8]),
        0x100..=0xffff => (0xcd, &(integer as u16).to_be_bytes()),
        0x1_0000..=0xffff_ffff => (0xce, &(integer as u32).to_be_bytes()),
        0x1_0000_0000.. => (0xcf, &integer.to_be_bytes()),
        -128..-32 => (0xd0, &[integer as u8]),
        -0x8000..-128 => (0xd1, &(integer as i16).to_be_bytes()),
        -0x8000_0000..-0x8000 => (0xd2, &(integer as i32).to_be_bytes()),
        _ => (0xd3, &integer.to_be_bytes()),
    };
    out.push(kind);
    out.extend(bytes);
}

fn pack_table(table: &Table, depth: usize, out: &mut Output<'_>) -> Result<()> {
    let (mut count, mut most, mut is_array) = (0_usize, 0_i64, true);
    table.for_each(|key: Value, _: Value| {
        count += 1;
        match key {
            Value::Integer(index) if index > 0 => most = most.max(index),
            _ => is_array = false,
        }
        Ok(())
    })?;
    if is_array && most as usize == count {
        pack_head(count, (0x90, 15), None, 0xdc, out);
        for index in 1..=count {
            pack(&table.raw_get(index)?, depth + 1, out)?;
        }
        return Ok(());
    }
    pack_head(count, (0x80, 15), None, 0xde, out);
    table.for_each(|key: Value, value: Value| {
        pack(&key, depth + 1, out)?;
        pack(&value, depth + 1, out)
    })
}

fn unpack(lua: &Lua, args: &Args, limit: i64, offset: i64, tells_offset: bool) -> Returned {
    let text = args.text(lua, 0)?;
    let text = text.as_bytes();
    if offset < 0 || limit < 0 {
        return Err(format!(
            "Invalid request to unpack with offset of {offset} and limit of {}.",
            if limit == i64::MAX { text.len() as i64 } else { limit }
        )
        .into());
    }
    let Some(mut rest) = usize::try_from(offset).ok().and_then(|offset| text.get(offset..)) else {
        let len = text.len();
        return Err(format!("Start offset {offset} greater than input length {len}.").into());
    };
    let mut values = MultiValue::new();
    while !rest.is_empty() && (values.len() as i64) < limit {
        values.push_back(take(lua, &mut rest)?);
    }
    if tells_offset {
        let next = if rest.is_empty() { -1 } else { (text.len() - rest.len()) as i64 };
        values.push_front(Value::Integer(next));
    }
    Ok(values)
}

fn bytes<'a>(rest: &mut &'a [u8], len: usize) -> std::result::Result<&'a [u8], Failure> {
    let (taken, behind) =
        rest.split_at_checked(len).ok_or(Failure::Text("Missing bytes in input.".into()))?;
    *rest = behind;
    Ok(taken)
}

fn unsigned(rest: &mut &[u8], len: usize) -> std::result::Result<u64, Failure> {
    Ok(bytes(rest, len)?.iter().fold(0, |value, byte| (value << 8) | u64::from(*byte)))
}

/// What begins with a byte.
enum Part {
    Value(Value),
    /// As many values.
    Array(u64),
    /// As many keys with their values.
    Map(u64),
}

fn part(lua: &Lua, rest: &mut &[u8]) -> std::result::Result<Part, Failure> {
    let kind = bytes(rest, 1)?[0];
    let text = |rest: &mut &[u8], len: usize| -> std::result::Result<Value, Failure> {
        Ok(Value::String(lua.create_string(bytes(rest, len)?)?))
    };
    Ok(Part::Value(match kind {
        0..=0x7f => Value::Integer(kind.into()),
        0xe0..=0xff => Value::Integer((kind as i8).into()),
        0xc0 => Value::Nil,
        0xc2 => Value::Boolean(false),
        0xc3 => Value::Boolean(true),
        0xca => Value::Number(f32::from_bits(unsigned(rest, 4)? as u32).into()),
        0xcb => Value::Number(f64::from_bits(unsigned(rest, 8)?)),
        0xcc..=0xcf => Value::Number(unsigned(rest, 1 << (kind - 0xcc))? as f64),
        0xd0 => Value::Integer((unsigned(rest, 1)? as i8).into()),
        0xd1 => Value::Integer((unsigned(rest, 2)? as i16).into()),
        0xd2 => Value::Integer((unsigned(rest, 4)? as i32).into()),
        0xd3 => Value::Number(unsigned(rest, 8)? as i64 as f64),
        0xa0..=0xbf => text(rest, usize::from(kind & 0x1f))?,
        0xd9..=0xdb | 0xc4..=0xc6 => {
            let width = 1 << (kind - if kind >= 0xd9 { 0xd9 } else { 0xc4 });
            let len = unsigned(rest, width)? as usize;
            text(rest, len)?
        }
        0x90..=0x9f => return Ok(Part::Array(u64::from(kind & 0xf))),
        0xdc | 0xdd => return Ok(Part::Array(unsigned(rest, if kind == 0xdc { 2 } else { 4 })?)),
        0x80..=0x8f => return Ok(Part::Map(u64::from(kind & 0xf))),
        0xde | 0xdf => return Ok(Part::Map(unsigned(rest, if kind == 0xde { 2 } else { 4 })?)),
        _ => return Err("Bad data format in input.".into()),
    }))
}

/// An array or a map that is not complete.
enum Open {
    /// With how many values it has, and will have.
    Array(Table, u64, u64),
    /// With how many pairs are missing, and the key whose value comes next.
    Map(Table, u64, Option<Value>),
}

/// Reads one value. What is in each other is kept in a list: a recursive function would overflow the stack of a
/// small thread.
fn take(lua: &Lua, rest: &mut &[u8]) -> std::result::Result<Value, Failure> {
    let mut open = Vec::new();
    loop {
        let mut value = match part(lua, rest)? {
            Part::Value(value) => value,
            Part::Array(0) | Part::Map(0) => Value::Table(lua.create_table()?),
            Part::Array(_) | Part::Map(_) if open.len() >= MAX_UNPACK_DEPTH => {
                return Err("Bad data format in input.".into());
            }
            Part::Array(count) => {
                open.push(Open::Array(lua.create_table()?, 0, count));
                continue;
            }
            Part::Map(count) => {
                open.push(Open::Map(lua.create_table()?, count, None));
                continue;
            }
        };
        // The value may complete what it is in, and that what it is in.
        loop {
            match open.pop() {
                None => return Ok(value),
                Some(Open::Array(table, len, count)) => {
                    table.raw_set(len + 1, value)?;
                    if len + 1 < count {
                        open.push(Open::Array(table, len + 1, count));
                        break;
                    }
                    value = Value::Table(table);
                }
                Some(Open::Map(table, count, None)) => {
                    if value.is_nil() || matches!(value, Value::Number(number) if number.is_nan()) {
                        return Err("Bad data format in input.".into());
                    }
                    open.push(Open::Map(table, count, Some(value)));
                    break;
                }
                Some(Open::Map(table, count, Some(key))) => {
                    table.raw_set(key, value)?;
                    if count > 1 {
                        open.push(Open::Map(table, count - 1, None));
                        break;
                    }
                    value = Value::Table(table);
                }
            }
        }
    }
}
