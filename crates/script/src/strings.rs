//! The functions of `string` that could run for ever: those with patterns, and `rep`.

use crate::library::{Args, Failure, Returned, define, one};
use crate::output::{MAX_OUTPUT, Output};
use crate::pattern::{self, Capture, Match, PatternError};
use crate::state::RunState;
use mlua::{Lua, LuaString, MultiValue, Result, Table, Value};
use std::rc::Rc;

/// Adds the functions to the table that the sandbox builds `string` from.
pub(crate) fn add(lua: &Lua, table: &Table, state: &Rc<RunState>) -> Result<()> {
    define(lua, table, "rep", |lua, args| {
        let (text, count) = (args.text(lua, 0)?, args.integer(lua, 1)?);
        let count = u64::try_from(count).unwrap_or(0);
        let text = text.as_bytes();
        if text.is_empty() || count == 0 {
            return one(Value::String(lua.create_string("")?));
        }
        if count.saturating_mul(text.len() as u64) > MAX_OUTPUT as u64 {
            return Err("resulting string too large".into());
        }
        one(Value::String(lua.create_string(text.repeat(count as usize))?))
    })?;
    let own = Rc::clone(state);
    define(lua, table, "find", move |lua, args| find(lua, args, &own, true))?;
    let own = Rc::clone(state);
    define(lua, table, "match", move |lua, args| find(lua, args, &own, false))?;
    let own = Rc::clone(state);
    define(lua, table, "gmatch_step", move |lua, args| gmatch_step(lua, args, &own))?;
    let own = Rc::clone(state);
    define(lua, table, "gsub_step", move |lua, args| gsub_step(lua, args, &own))?;
    let own = Rc::clone(state);
    define(lua, table, "gsub_text", move |lua, args| gsub_text(lua, args, &own))
}

fn search(
    text: &[u8],
    pattern: &[u8],
    from: usize,
    state: &RunState,
) -> std::result::Result<Option<Match>, Failure> {
    pattern::find(text, pattern, from, &mut || state.looks_stopped()).map_err(|error| match error {
        PatternError::Malformed(reason) => Failure::Text(reason.into()),
        PatternError::Interrupted => Failure::Text(state.killed().unwrap_or("interrupted").into()),
    })
}

fn push_captures(lua: &Lua, text: &[u8], found: &Match, values: &mut MultiValue) -> Result<()> {
    for capture in &found.captures {
        values.push_back(match capture {
            Capture::Text(from, to) => Value::String(lua.create_string(&text[*from..*to])?),
            Capture::Position(at) => Value::Integer(*at as i64),
        });
    }
    Ok(())
}

/// `find` and `match`
fn find(lua: &Lua, args: &Args, state: &RunState, is_find: bool) -> Returned {
    let (text, pattern) = (args.text(lua, 0)?, args.text(lua, 1)?);
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let from = match args.integer_or(lua, 2, 1)? {
        from if from > 0 => (from as u64 - 1).min(text.len() as u64) as usize,
        0 => 0,
        from => text.len().saturating_sub(from.unsigned_abs() as usize),
    };
    let is_plain = is_find
        && (!matches!(args.get(3), Value::Nil | Value::Boolean(false)) || pattern::is_plain(&pattern));
    if is_plain {
        return Ok(match memchr::memmem::find(&text[from..], &pattern) {
            None => MultiValue::from_iter([Value::Nil]),
            Some(at) => {
                let start = from + at;
                let bounds = [start + 1, start + pattern.len()];
                MultiValue::from_iter(bounds.map(|at| Value::Integer(at as i64)))
            }
        });
    }
    let Some(found) = search(&text, &pattern, from, state)? else {
        return one(Value::Nil);
    };
    let mut values = MultiValue::new();
    if is_find {
        values.push_back(Value::Integer(found.start as i64 + 1));
        values.push_back(Value::Integer(found.end as i64));
    }
    if !is_find || found.has_captures {
        push_captures(lua, &text, &found, &mut values)?;
    }
    Ok(values)
}

/// `(text, pattern, from)`: where the next search begins, and the captures; nothing if there is no match.
fn gmatch_step(lua: &Lua, args: &Args, state: &RunState) -> Returned {
    let (text, pattern, from) = (args.text(lua, 0)?, args.text(lua, 1)?, args.integer(lua, 2)? as usize);
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let mut values = MultiValue::new();
    if from > text.len() {
        return Ok(values);
    }
    // A leading `^` matches itself here, as in Lua 5.1.
    let escaped;
    let pattern = if pattern.first() == Some(&b'^') {
        escaped = [b"%", &*pattern].concat();
        &escaped[..]
    } else {
        &*pattern
    };
    if let Some(found) = search(&text, pattern, from, state)? {
        let next = if found.end == found.start { found.end + 1 } else { found.end };
        values.push_back(Value::Integer(next as i64));
        push_captures(lua, &text, &found, &mut values)?;
    }
    Ok(values)
}

/// `(text, pattern, from)`: start and end of the next match, from 0 on, and the captures.
fn gsub_step(lua: &Lua, args: &Args, state: &RunState) -> Returned {
    let (text, pattern, from) = (args.text(lua, 0)?, args.text(lua, 1)?, args.integer(lua, 2)? as usize);
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let mut values = MultiValue::new();
    if from <= text.len()
        && let Some(found) = search(&text, &pattern, from, state)?
    {
        values.push_back(Value::Integer(found.start as i64));
        values.push_back(Value::Integer(found.end as i64));
        push_captures(lua, &text, &found, &mut values)?;
    }
    Ok(values)
}

/// `gsub` with a text in which `%1` is the first capture.
fn gsub_text(lua: &Lua, args: &Args, state: &RunState) -> Returned {
    let (text, pattern, replacement) = (args.text(lua, 0)?, args.text(lua, 1)?, args.text(lua, 2)?);
    let (text, pattern, replacement): (&[u8], &[u8], &[u8]) =
        (&text.as_bytes(), &pattern.as_bytes(), &replacement.as_bytes());
    let most = args.integer_or(lua, 3, i64::MAX)?;
    let (mut out, mut count, mut from) = (Output::new(state), 0, 0);
    while count < most && !out.has_ended() {
        let Some(found) = search(text, pattern, from, state)? else { break };
        count += 1;
        out.extend(&text[from..found.start]);
        replace(text, replacement, &found, &mut out)?;
        if found.end > found.start {
            from = found.end;
        } else if let Some(byte) = text.get(found.end) {
            out.push(*byte);
            from = found.end + 1;
        } else {
            from = text.len();
            break;
        }
        if pattern.first() == Some(&b'^') {
            break;
        }
    }
    out.extend(&text[from..]);
    let replaced: LuaString = lua.create_string(out.finish()?)?;
    Ok(MultiValue::from_iter([Value::String(replaced), Value::Integer(count)]))
}

fn replace(
    text: &[u8],
    replacement: &[u8],
    found: &Match,
    out: &mut Output<'_>,
) -> std::result::Result<(), Failure> {
    let mut rest = replacement.iter();
    while let Some(byte) = rest.next() {
        if *byte != b'%' {
            out.push(*byte);
            continue;
        }
        match rest.next() {
            Some(b'0') => out.extend(&text[found.start..found.end]),
            Some(digit) if digit.is_ascii_digit() => match found.captures.get(usize::from(digit - b'1')) {
                Some(Capture::Text(from, to)) => out.extend(&text[*from..*to]),
                Some(Capture::Position(at)) => out.extend(at.to_string().as_bytes()),
                None => return Err("invalid capture index".into()),
            },
            Some(other) => out.push(*other),
            // Lua 5.1 copies the zero behind its string.
            None => out.push(0),
        }
    }
    Ok(())
}
