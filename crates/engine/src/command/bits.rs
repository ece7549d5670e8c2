//! Bits of strings, numbered from the most significant bit of the first byte.

use super::parse::{self, is};
use super::strings::check_length;
use super::{Answer, Command, Extension, Group, Handler, KeySpec, Run, flags::*};
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::{Deadline, MAX_BYTES, Payload};
use crate::value::Type;
use crate::watch::part::Part;
use crate::watch::touched::{Splice, Touched};

const fn row(id: u16, name: &'static str, arity: i16, flags: u32, keys: KeySpec, run: Handler) -> Command {
    Command::new(Group::Bitmap, id, name, arity, flags, keys, Run::Keys(run))
}

pub(super) const COMMANDS: &[Command] = &[
    row(60, "setbit", 4, WRITE | DENYOOM, KeySpec::ONE, setbit)
        .using(&["RW access update"])
        .extending(Extension::Bit)
        .doc(
            "2.2.0",
            "O(1), and O(N) with N the bytes that the string grows by",
            "key offset value",
            "Sets or clears a bit of a string value, which grows with zero bits, and returns what it was.",
        ),
    row(61, "getbit", 3, READONLY | FAST, KeySpec::ONE, getbit)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc("2.2.0", "O(1)", "key offset", "Returns a bit of a string value.")
        .looking_at(part_of_bit),
    row(62, "bitcount", -2, READONLY, KeySpec::ONE, bitcount)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .visiting_all()
        .doc(
            "2.6.0",
            "O(N) with N the bytes looked at",
            "key [start end [BYTE | BIT]]",
            "Counts the set bits of a string value or of a part of it.",
        )
        .looking_at(part_of_count),
    row(63, "bitpos", -3, READONLY, KeySpec::ONE, bitpos)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .visiting_all()
        .doc(
            "2.8.7",
            "O(N) with N the bytes looked at",
            "key bit [start [end [BYTE | BIT]]]",
            "Finds the first set or clear bit of a string value or of a part of it.",
        ),
    row(64, "bitop", -4, WRITE | DENYOOM, KeySpec::Range { first: 2, last: -1, step: 1 }, bitop)
        .using(&["OW update", "RO access"])
        .visiting_all()
        .doc(
            "2.6.0",
            "O(N) with N the bytes of all sources",
            "<AND | OR | XOR | NOT> destkey key [key ...]",
            "Combines string values bit by bit and stores the result.",
        ),
    row(65, "bitfield", -2, WRITE | DENYOOM, KeySpec::ONE, bitfield)
        .using(&["RW access update"])
        .using_by_options(bitfield_key_uses)
        .extending(Extension::BitField)
        .doc(
            "3.2.0",
            "O(1) for each operation",
            "key [GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] <SET encoding offset value | \
         INCRBY encoding offset increment> ...]",
            "Reads and changes integers of any width in a string value.",
        ),
    row(66, "bitfield_ro", -2, READONLY | FAST, KeySpec::ONE, bitfield_ro)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            "6.0.0",
            "O(1) for each operation",
            "key [GET encoding offset ...]",
            "Reads integers of any width in a string value.",
        ),
];

const BAD_OFFSET: CommandError = CommandError::text("ERR bit offset is not an integer or out of range");

/// Parses a bit's number. After a `#` it counts integers of `width` bits, if the command allows
/// that.
fn offset(arg: &[u8], width: Option<u32>) -> Result<usize, CommandError> {
    let (digits, scale) = match (arg, width) {
        ([b'#', digits @ ..], Some(width)) => (digits, u64::from(width)),
        _ => (arg, 1),
    };
    parse::canonical_integer(digits)
        .and_then(|value| u64::try_from(value).ok()?.checked_mul(scale))
        .filter(|&bit| bit >> 3 < MAX_BYTES as u64)
        .map(|bit| bit as usize)
        .ok_or(BAD_OFFSET)
}

fn bit_of(bytes: &[u8], at: usize) -> bool {
    bytes.get(at >> 3).is_some_and(|byte| byte & (0x80 >> (at & 7)) != 0)
}

/// Returns the string of a key, grown to at least `len` bytes, and its previous length.
fn grown<'c>(
    ctx: &'c mut Context<'_, '_>,
    key: &[u8],
    len: usize,
) -> Result<(&'c mut Vec<u8>, usize), CommandError> {
    assert!((1..=MAX_BYTES).contains(&len), "a string is to have {len} bytes");
    let bytes = ctx.keys.growing_string(key)?;
    let old_len = bytes.len();
    if old_len < len {
        bytes.resize(len, 0);
    }
    Ok((bytes, old_len))
}

fn setbit(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (key, at) = (args[1], offset(args[2], None)?);
    let bit = match args[3] {
        b"0" => false,
        b"1" => true,
        _ => return Err(CommandError::text("ERR bit is not an integer or out of range")),
    };
    let byte = at >> 3;
    let (bytes, old_len) = grown(ctx, key, byte + 1)?;
    let old = bit_of(bytes, at);
    if old != bit {
        bytes[byte] ^= 0x80 >> (at & 7);
    }
    if old_len <= byte || old != bit {
        let splice = Splice::over(old_len, byte, byte + 1);
        ctx.keys.changed_in(key, "setbit", || Touched::Splice { of: Type::String, splice });
    }
    ctx.reply.integer(i64::from(old));
    Ok(())
}

fn getbit(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let at = offset(args[2], None)?;
    let bit = ctx.keys.string(args[1])?.is_some_and(|text| bit_of(&text, at));
    ctx.reply.integer(i64::from(bit));
    Ok(())
}

/// Returns the part that GETBIT reads: one byte.
fn part_of_bit(args: &[&[u8]]) -> Part {
    let byte = args.get(2).and_then(|arg| i64::try_from(offset(arg, None).ok()? >> 3).ok());
    byte.map_or(Part::Everything, |byte| Part::Span { of: Type::String, first: byte, last: byte })
}

/// Returns whether a range is in bits.
fn in_bits(unit: &[u8]) -> Result<bool, CommandError> {
    if is(unit, "BIT") {
        Ok(true)
    } else if is(unit, "BYTE") {
        Ok(false)
    } else {
        Err(CommandError::Syntax)
    }
}

/// Returns the bits between two ends. Negative ends count from the back and are clamped to the
/// front.
fn bits_between(start: i64, end: i64, by_bit: bool, len: usize) -> std::ops::Range<usize> {
    let units = if by_bit { len as i64 * 8 } else { len as i64 };
    let absolute = |index: i64| if index < 0 { index.saturating_add(units).max(0) } else { index };
    let (start, end) = (absolute(start), absolute(end).min(units - 1));
    if start > end {
        return 0..0;
    }
    let bits = if by_bit { 1 } else { 8 };
    start as usize * bits..(end as usize + 1) * bits
}

/// Returns the bytes that a range of bits touches, with the bits outside the range replaced by
/// those of `fill`.
fn masked(bytes: &[u8], bits: &std::ops::Range<usize>, fill: u8) -> impl Iterator<Item = u8> {
    let (first, last) = (bits.start >> 3, (bits.end - 1) >> 3);
    let (before, behind) = (!(0xff_u8 >> (bits.start & 7)), 0x7f_u8 >> ((bits.end - 1) & 7));
    let outside = move |index: usize| {
        (if index == first { before } else { 0 }) | (if index == last { behind } else { 0 })
    };
    bytes[first..=last].iter().zip(first..).map(move |(&byte, index)| {
        let outside = outside(index);
        byte & !outside | fill & outside
    })
}

fn count_ones(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    let words: usize = words.iter().map(|word| u64::from_ne_bytes(*word).count_ones() as usize).sum();
    words + rest.iter().map(|byte| byte.count_ones() as usize).sum::<usize>()
}

/// Returns the part that BITCOUNT reads: the bytes between two ends.
fn part_of_count(args: &[&[u8]]) -> Part {
    let part = Part::span(Type::String, args, 2, 3);
    match (args.get(4..), part) {
        (Some([]), part) => part,
        (Some([unit]), Part::Span { of, first, last }) => match in_bits(unit) {
            Ok(false) => Part::Span { of, first, last },
            // The byte of each bit: -8 is the first bit of the last byte, and -9 the last bit of
            // the byte before.
            Ok(true) => Part::Span { of, first: first.div_euclid(8), last: last.div_euclid(8) },
            Err(_) => Part::Everything,
        },
        _ => Part::Everything,
    }
}

fn bitcount(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let range = match args[2..] {
        [] => None,
        [start, end, ref unit @ ..] if unit.len() <= 1 => {
            let (start, end) = (parse::integer(start)?, parse::integer(end)?);
            Some((start, end, unit.first().map_or(Ok(false), |unit| in_bits(unit))?))
        }
        _ => return Err(CommandError::Syntax),
    };
    let Some(text) = ctx.keys.string(args[1])? else {
        ctx.reply.integer(0);
        return Ok(());
    };
    let bits = match range {
        None => 0..text.len() * 8,
        // Two negative ends in the wrong order are an empty range, whatever the unit.
        Some((start, end, _)) if start < 0 && end < 0 && start > end => 0..0,
        Some((start, end, by_bit)) => bits_between(start, end, by_bit, text.len()),
    };
    let count = if bits.is_empty() {
        0
    } else {
        let (first, last) = (bits.start >> 3, (bits.end - 1) >> 3);
        let outside = first << 3..bits.start;
        let behind = bits.end..(last + 1) << 3;
        count_ones(&text[first..=last]) - outside.chain(behind).filter(|&at| bit_of(&text, at)).count()
    };
    ctx.reply.count(count);
    Ok(())
}

/// Returns the first bit of this value in a range.
fn find_bit(bytes: &[u8], bits: &std::ops::Range<usize>, bit: bool) -> Option<usize> {
    if bits.is_empty() {
        return None;
    }
    // Search for a one, in the bytes or in their complement.
    let flip = if bit { 0 } else { 0xff };
    let found = masked(bytes, bits, flip).position(|byte| byte != flip)?;
    let byte = masked(bytes, bits, flip).nth(found)? ^ flip;
    Some((((bits.start >> 3) + found) << 3) + byte.leading_zeros() as usize)
}

fn bitpos(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let bit = match parse::integer(args[2])? {
        0 => false,
        1 => true,
        _ => return Err(CommandError::text("ERR The bit argument must be 1 or 0.")),
    };
    let (start, end, by_bit) = match args[3..] {
        [] => (0, None, false),
        [start] => (parse::integer(start)?, None, false),
        [start, end, ref unit @ ..] if unit.len() <= 1 => {
            let start = parse::integer(start)?;
            let by_bit = unit.first().map_or(Ok(false), |unit| in_bits(unit))?;
            (start, Some(parse::integer(end)?), by_bit)
        }
        _ => return Err(CommandError::Syntax),
    };
    let Some(text) = ctx.keys.string(args[1])? else {
        // An absent key is an endless string of zeros.
        ctx.reply.integer(if bit { -1 } else { 0 });
        return Ok(());
    };
    let bits = bits_between(start, end.unwrap_or(i64::MAX), by_bit, text.len());
    match find_bit(&text, &bits, bit) {
        Some(at) => ctx.reply.count(at),
        // A string continues with zeros, unless the caller named the end.
        None if !bit && end.is_none() && !bits.is_empty() => ctx.reply.count(bits.end),
        None => ctx.reply.integer(-1),
    }
    Ok(())
}

fn bitop(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (name, destination, sources) = (args[1], args[2], &args[3..]);
    let combine: fn(u8, u8) -> u8 = if is(name, "AND") {
        |a, b| a & b
    } else if is(name, "OR") {
        |a, b| a | b
    } else if is(name, "XOR") || is(name, "NOT") {
        |a, b| a ^ b
    } else {
        return Err(CommandError::Syntax);
    };
    let is_not = is(name, "NOT");
    if is_not && sources.len() != 1 {
        return Err(CommandError::text("ERR BITOP NOT must be called with a single source key."));
    }
    let mut len = 0;
    for key in sources {
        len = len.max(ctx.keys.string(key)?.map_or(0, |text| text.len()));
    }
    let mut result = vec![0; len];
    for (number, key) in sources.iter().enumerate() {
        let text = ctx.keys.string(key)?;
        let bytes: &[u8] = text.as_deref().unwrap_or_default();
        if number == 0 {
            result[..bytes.len()].copy_from_slice(bytes);
        } else {
            let (head, tail) = result.split_at_mut(bytes.len());
            head.iter_mut().zip(bytes).for_each(|(into, &byte)| *into = combine(*into, byte));
            // A shorter string continues with zeros.
            tail.iter_mut().for_each(|into| *into = combine(*into, 0));
        }
    }
    if is_not {
        result.iter_mut().for_each(|byte| *byte = !*byte);
    }
    if !result.is_empty() {
        ctx.keys.set(destination, Payload::Raw(&result), Deadline::Clear);
        ctx.keys.changed(destination, "set");
    } else if ctx.keys.remove(destination) {
        ctx.keys.changed(destination, "del");
    }
    ctx.reply.count(result.len());
    Ok(())
}

/// What happens to a result that does not fit its field.
#[derive(Clone, Copy)]
enum Overflow {
    /// Drops the higher bits.
    Wrap,
    /// Stores the nearest value that fits.
    Saturate,
    /// Stores nothing and answers null.
    Fail,
}

/// An integer in a string: its position and type.
#[derive(Clone, Copy)]
struct Field {
    signed: bool,
    width: u32,
    at: usize,
}

impl Field {
    fn parse(encoding: &[u8], at: &[u8]) -> Result<Self, CommandError> {
        let (signed, digits, widest) = match encoding {
            [b'i', digits @ ..] => (true, digits, 64),
            [b'u', digits @ ..] => (false, digits, 63),
            _ => (false, [].as_slice(), 0),
        };
        let width = parse::canonical_integer(digits).filter(|width| (1..=widest).contains(width));
        let width = width.ok_or(CommandError::text(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
        ))? as u32;
        Ok(Self { signed, width, at: offset(at, Some(width))? })
    }

    /// Returns the least length of a string, in bytes, that contains the field.
    fn needs(self) -> usize {
        ((self.at + self.width as usize - 1) >> 3) + 1
    }

    /// Returns the distance of the field's last bit from the end of its window.
    fn shift(self) -> usize {
        WINDOW * 8 - (self.at & 7) - self.width as usize
    }

    fn read(self, bytes: &[u8]) -> i64 {
        let raw = (window(bytes, self.at >> 3) >> self.shift()) as u64 & (u64::MAX >> (64 - self.width));
        let unused = 64 - self.width;
        if self.signed { ((raw << unused).cast_signed()) >> unused } else { raw.cast_signed() }
    }

    /// Stores the low bits of a value. The bytes must contain the field.
    fn write(self, bytes: &mut [u8], value: i64) {
        let mask = u128::from(u64::MAX >> (64 - self.width)) << self.shift();
        let old = window(bytes, self.at >> 3);
        let new = old & !mask | (u128::from(value.cast_unsigned()) << self.shift()) & mask;
        let new = new.to_be_bytes();
        bytes[self.at >> 3..]
            .iter_mut()
            .zip(&new[new.len() - WINDOW..])
            .for_each(|(into, byte)| *into = *byte);
    }

    /// Returns the value to store for a result; `None` if it does not fit and `overflow` is `Fail`.
    fn fit(self, value: i128, overflow: Overflow) -> Option<i64> {
        let (low, high) = if self.signed {
            (-(1_i128 << (self.width - 1)), (1_i128 << (self.width - 1)) - 1)
        } else {
            (0, (1_i128 << self.width) - 1)
        };
        if (low..=high).contains(&value) {
            return Some(value as i64);
        }
        match overflow {
            Overflow::Fail => None,
            Overflow::Saturate => Some(value.clamp(low, high) as i64),
            Overflow::Wrap => {
                let unused = 64 - self.width;
                let kept = (value as u64) << unused;
                Some(if self.signed { kept.cast_signed() >> unused } else { (kept >> unused).cast_signed() })
            }
        }
    }
}

/// Bytes that contain any field of 64 bits.
const WINDOW: usize = 9;

/// Returns nine bytes as one big-endian number, with zeros after the end of `bytes`.
fn window(bytes: &[u8], from: usize) -> u128 {
    (from..from + WINDOW).fold(0, |value, at| value << 8 | u128::from(bytes.get(at).copied().unwrap_or(0)))
}

#[derive(Clone, Copy)]
enum Operation {
    Get,
    Set(i64, Overflow),
    Add(i64, Overflow),
}

impl Operation {
    /// Returns the value to store, if any, and the answer.
    fn run(self, field: Field, old: i64) -> (Option<i64>, Option<i64>) {
        match self {
            Self::Get => (None, Some(old)),
            Self::Set(value, overflow) => {
                // As in Redis, the value set into an unsigned field is unsigned: a negative one is
                // very large.
                let wide = if field.signed { i128::from(value) } else { i128::from(value.cast_unsigned()) };
                let new = field.fit(wide, overflow);
                (new, new.map(|_| old))
            }
            Self::Add(value, overflow) => {
                let new = field.fit(i128::from(old) + i128::from(value), overflow);
                (new, new)
            }
        }
    }
}

fn operations(args: &[&[u8]]) -> Result<Vec<(Field, Operation)>, CommandError> {
    let (mut operations, mut overflow, mut rest) = (Vec::new(), Overflow::Wrap, args);
    loop {
        rest = match *rest {
            [] => return Ok(operations),
            [name, encoding, at, ref rest @ ..] if is(name, "GET") => {
                operations.push((Field::parse(encoding, at)?, Operation::Get));
                rest
            }
            [name, encoding, at, value, ref rest @ ..] if is(name, "SET") => {
                let field = Field::parse(encoding, at)?;
                operations.push((field, Operation::Set(parse::integer(value)?, overflow)));
                rest
            }
            [name, encoding, at, value, ref rest @ ..] if is(name, "INCRBY") => {
                let field = Field::parse(encoding, at)?;
                operations.push((field, Operation::Add(parse::integer(value)?, overflow)));
                rest
            }
            [name, kind, ref rest @ ..] if is(name, "OVERFLOW") => {
                overflow = if is(kind, "WRAP") {
                    Overflow::Wrap
                } else if is(kind, "SAT") {
                    Overflow::Saturate
                } else if is(kind, "FAIL") {
                    Overflow::Fail
                } else {
                    return Err(CommandError::text("ERR Invalid OVERFLOW type specified"));
                };
                rest
            }
            _ => return Err(CommandError::Syntax),
        };
    }
}

fn reply_fields(
    ctx: &mut Context<'_, '_>,
    key: &[u8],
    operations: &[(Field, Operation)],
) -> Result<(), CommandError> {
    let text = ctx.keys.string(key)?;
    let bytes: &[u8] = text.as_deref().unwrap_or_default();
    ctx.reply.array(operations.len());
    operations.iter().for_each(|(field, _)| ctx.reply.integer(field.read(bytes)));
    Ok(())
}

/// Without `SET` and `INCRBY`, it is a read.
fn bitfield_key_uses(args: &[&[u8]]) -> &'static [&'static str] {
    let writes = args.iter().skip(2).any(|arg| is(arg, "SET") || is(arg, "INCRBY"));
    if writes { &["RW access update"] } else { &["RO access"] }
}

fn bitfield(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (key, operations) = (args[1], operations(&args[2..])?);
    let writes = operations.iter().filter(|(_, operation)| !matches!(operation, Operation::Get));
    let Some(len) = writes.map(|(field, _)| field.needs()).max() else {
        return reply_fields(ctx, key, &operations);
    };
    check_length(len)?;
    let (bytes, old_len) = grown(ctx, key, len)?;
    let (mut answers, mut changed) = (Vec::with_capacity(operations.len()), old_len < len);
    for (field, operation) in operations {
        let old = field.read(bytes);
        let (new, answer) = operation.run(field, old);
        if let Some(new) = new.filter(|&new| new != old) {
            field.write(bytes, new);
            changed = true;
        }
        answers.push(answer);
    }
    if changed {
        ctx.keys.changed(key, "setbit");
    }
    ctx.reply.array(answers.len());
    for answer in answers {
        match answer {
            Some(value) => ctx.reply.integer(value),
            None => ctx.reply.null(),
        }
    }
    Ok(())
}

fn bitfield_ro(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let operations = operations(&args[2..])?;
    if operations.iter().any(|(_, operation)| !matches!(operation, Operation::Get)) {
        return Err(CommandError::text("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    reply_fields(ctx, args[1], &operations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_field_reads_what_was_written_and_leaves_its_neighbours(
            before in proptest::collection::vec(any::<u8>(), 12..30),
            at in 0..96_usize,
            width in 1..=64_u32,
            signed: bool,
            value: i64,
        ) {
            let field = Field { signed, width: if signed { width } else { width.min(63) }, at };
            let mut bytes = before.clone();
            bytes.resize(before.len().max(field.needs()), 0);
            let padded = bytes.clone();
            let stored = field.fit(i128::from(value), Overflow::Wrap).expect("wrapping always fits");
            field.write(&mut bytes, stored);
            prop_assert_eq!(field.read(&bytes), stored);
            for bit in (0..bytes.len() * 8).filter(|bit| !(at..at + field.width as usize).contains(bit)) {
                prop_assert_eq!(bit_of(&bytes, bit), bit_of(&padded, bit));
            }
        }

        #[test]
        fn a_bit_is_found_where_looking_at_every_bit_finds_it(
            bytes in proptest::collection::vec(prop_oneof![Just(0_u8), Just(0xff), any::<u8>()], 1..20),
            start in -200..200_i64,
            end in -200..200_i64,
            by_bit: bool,
            bit: bool,
        ) {
            let bits = bits_between(start, end, by_bit, bytes.len());
            let slow = bits.clone().find(|&at| bit_of(&bytes, at) == bit);
            prop_assert_eq!(find_bit(&bytes, &bits, bit), slow);
        }
    }
}
