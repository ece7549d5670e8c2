//! `struct`: numbers and strings in the layout of C's structures.

use crate::library::{Args, Failure, Returned, define, one};
use crate::output::Output;
use crate::state::RunState;
use mlua::{Lua, MultiValue, Result, Table, Value};
use std::rc::Rc;

/// Most bytes of an integer in a format.
const MAX_INTEGER: usize = 32;
/// Alignment of `!` without a number.
const NATIVE_ALIGNMENT: usize = 8;

/// Creates the library.
pub(crate) fn library(lua: &Lua, state: &Rc<RunState>) -> Result<Table> {
    let table = lua.create_table()?;
    let own = Rc::clone(state);
    define(lua, &table, "pack", move |lua, args| pack(lua, args, &own))?;
    define(lua, &table, "unpack", unpack)?;
    define(lua, &table, "size", |lua, args| {
        let format = args.text(lua, 0)?;
        let (mut format, mut total) = (Format::new(&format.as_bytes()), 0_usize);
        while let Some(option) = format.next(args, total)? {
            let is_variable = match option {
                Part { kind: b's', .. } => Some("option 's' has no fixed size"),
                Part { kind: b'c', size: 0, .. } => Some("option 'c0' has no fixed size"),
                _ => None,
            };
            if let Some(reason) = is_variable {
                return Err(args.wrong(0, reason));
            }
            total = total
                .checked_add(option.padding + option.size)
                .filter(|total| i32::try_from(*total).is_ok())
                .ok_or(Failure::Text("integral size overflow".into()))?;
        }
        one(Value::Integer(total as i64))
    })?;
    Ok(table)
}

/// One option of a format that stands for data.
struct Part {
    kind: u8,
    size: usize,
    /// Bytes before it.
    padding: usize,
    is_big: bool,
}

struct Format {
    bytes: Vec<u8>,
    at: usize,
    is_big: bool,
    alignment: usize,
}

impl Format {
    fn new(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), at: 0, is_big: cfg!(target_endian = "big"), alignment: 1 }
    }

    fn number(&mut self, default: usize) -> std::result::Result<usize, Failure> {
        let digits = self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Ok(default);
        }
        let text = String::from_utf8_lossy(&self.bytes[self.at..self.at + digits]).into_owned();
        self.at += digits;
        let number = text.parse::<i32>().ok().and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| "integral size overflow".into())
    }

    /// The next part, if its data begins behind `total` bytes and its padding.
    fn next(&mut self, args: &Args, total: usize) -> std::result::Result<Option<Part>, Failure> {
        while let Some(&kind) = self.bytes.get(self.at) {
            self.at += 1;
            let size = match kind {
                b' ' => continue,
                b'>' | b'<' => {
                    self.is_big = kind == b'>';
                    continue;
                }
                b'!' => {
                    let alignment = self.number(NATIVE_ALIGNMENT)?;
                    if !alignment.is_power_of_two() {
                        return Err(format!("alignment {alignment} is not a power of 2").into());
                    }
                    self.alignment = alignment;
                    continue;
                }
                b'b' | b'B' | b'x' => 1,
                b'h' | b'H' => 2,
                b'l' | b'L' | b'T' | b'd' => 8,
                b'f' => 4,
                b's' => 0,
                b'c' => self.number(1)?,
                b'i' | b'I' => {
                    let size = self.number(4)?;
                    if size > MAX_INTEGER {
                        let limit = MAX_INTEGER;
                        return Err(format!("integral size {size} is larger than limit of {limit}").into());
                    }
                    size
                }
                other => {
                    return Err(args.wrong(0, &format!("invalid format option '{}'", char::from(other))));
                }
            };
            let unit = size.min(self.alignment);
            let padding = if unit == 0 || kind == b'c' {
                0
            } else {
                unit.wrapping_sub(total & (unit - 1)) & (unit - 1)
            };
            return Ok(Some(Part { kind, size, padding, is_big: self.is_big }));
        }
        Ok(None)
    }
}

fn pack(lua: &Lua, args: &Args, state: &RunState) -> Returned {
    let format = args.text(lua, 0)?;
    let (mut format, mut out, mut at) = (Format::new(&format.as_bytes()), Output::new(state), 1);
    while let Some(part) = format.next(args, out.len())? {
        if out.has_ended() {
            break;
        }
        out.extend(&[0; MAX_INTEGER][..part.padding]);
        match part.kind {
            b'x' => out.push(0),
            b'f' | b'd' => {
                let number = args.number(lua, at)?;
                let mut bytes = if part.kind == b'f' {
                    (number as f32).to_le_bytes().to_vec()
                } else {
                    number.to_le_bytes().to_vec()
                };
                if part.is_big {
                    bytes.reverse();
                }
                out.extend(&bytes);
                at += 1;
            }
            b'c' | b's' => {
                let text = args.text(lua, at)?;
                let text = text.as_bytes();
                let size = if part.size == 0 { text.len() } else { part.size };
                let Some(text) = text.get(..size) else { return Err(args.wrong(at, "string too short")) };
                out.extend(text);
                if part.kind == b's' {
                    out.push(0);
                }
                at += 1;
            }
            _ => {
                let number = args.number(lua, at)?;
                let value = if number < 0.0 { number as i64 as u64 } else { number as u64 };
                let mut bytes = vec![0; part.size];
                for (byte, own) in bytes.iter_mut().zip(value.to_le_bytes()) {
                    *byte = own;
                }
                if part.is_big {
                    bytes.reverse();
                }
                out.extend(&bytes);
                at += 1;
            }
        }
    }
    one(Value::String(lua.create_string(out.finish()?)?))
}

fn unpack(lua: &Lua, args: &Args) -> Returned {
    let (format, data) = (args.text(lua, 0)?, args.text(lua, 1)?);
    let (mut format, data) = (Format::new(&format.as_bytes()), data.as_bytes());
    let from = args.integer_or(lua, 2, 1)?;
    let Some(mut at) = usize::try_from(from).ok().and_then(|from| from.checked_sub(1)) else {
        return Err(args.wrong(2, "offset must be 1 or greater"));
    };
    let mut values: Vec<Value> = Vec::new();
    while let Some(part) = format.next(args, at)? {
        at = at.saturating_add(part.padding);
        let too_short = || args.wrong(1, "data string too short");
        let bytes = at.checked_add(part.size).and_then(|end| data.get(at..end)).ok_or_else(too_short)?;
        let mut taken = part.size;
        match part.kind {
            b'x' => {}
            b'c' if part.size == 0 => {
                let size = match values.pop() {
                    Some(Value::Integer(size)) => size as f64,
                    Some(Value::Number(size)) => size,
                    _ => return Err("format 'c0' needs a previous size".into()),
                };
                taken = if size >= 0.0 { size as usize } else { usize::MAX };
                let text = at.checked_add(taken).and_then(|end| data.get(at..end)).ok_or_else(too_short)?;
                values.push(Value::String(lua.create_string(text)?));
            }
            b'c' => values.push(Value::String(lua.create_string(bytes)?)),
            b's' => {
                let end = memchr::memchr(0, &data[at..]);
                let end = end.ok_or(Failure::Text("unfinished string in data".into()))?;
                values.push(Value::String(lua.create_string(&data[at..at + end])?));
                taken = end + 1;
            }
            b'f' => values.push(Value::Number(f32::from_bits(unsigned(bytes, part.is_big) as u32).into())),
            b'd' => values.push(Value::Number(f64::from_bits(unsigned(bytes, part.is_big)))),
            kind => {
                let value = unsigned(bytes, part.is_big);
                let number = if kind.is_ascii_uppercase() {
                    value as f64
                } else {
                    let unused = 64 - 8 * bytes.len().clamp(1, 8) as u32;
                    ((value << unused) as i64 >> unused) as f64
                };
                values.push(Value::Number(number));
            }
        }
        at += taken;
    }
    values.push(Value::Integer(at as i64 + 1));
    Ok(MultiValue::from_iter(values))
}

/// The low 64 bits of an integer.
fn unsigned(bytes: &[u8], is_big: bool) -> u64 {
    let fold = |value: u64, byte: &u8| (value << 8) | u64::from(*byte);
    if is_big { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) }
}
