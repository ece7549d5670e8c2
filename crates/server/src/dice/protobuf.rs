//! Encodes and decodes the subset of Protocol Buffers that the protocol's two messages need.
//!
//! Written by hand: generated code would copy each string and add many dependencies.

/// Error for bytes that are not a valid message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("ERR Protocol error: a frame that is no protocol buffer message")]
pub(super) struct Malformed;

const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const BYTES: u64 = 2;
const FIXED_32: u64 = 5;

/// Content of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content<'a> {
    Bytes(&'a [u8]),
    /// A number; requests contain none.
    Number,
}

/// Reads the fields of a message in order, including unknown ones.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    /// Returns the next field's number and content; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Content<'a>)>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let field = tag >> 3;
        if field == 0 || tag > u64::from(u32::MAX) {
            return Err(Malformed);
        }
        let content = match tag & 7 {
            VARINT => {
                self.varint()?;
                Content::Number
            }
            FIXED_64 => self.take(8).map(|_| Content::Number)?,
            BYTES => {
                let length = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
                Content::Bytes(self.take(length)?)
            }
            FIXED_32 => self.take(4).map(|_| Content::Number)?,
            // Groups, which are deprecated, and unknown wire types.
            _ => return Err(Malformed),
        };
        Ok(Some((field, content)))
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(Malformed)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                // The tenth byte holds one bit.
                return if shift == 63 && *byte > 1 { Err(Malformed) } else { Ok(value) };
            }
        }
        Err(Malformed)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }
}

/// Writes a number unless it is 0, the default.
pub(super) fn put_number(buffer: &mut Vec<u8>, field: u32, number: u64) {
    if number != 0 {
        put_tag(buffer, field, VARINT);
        put_varint(buffer, number);
    }
}

/// Writes a signed 64-bit number unless it is 0, the default.
pub(super) fn put_integer(buffer: &mut Vec<u8>, field: u32, number: i64) {
    put_number(buffer, field, number as u64);
}

/// Writes a string unless it is empty, the default.
pub(super) fn put_text(buffer: &mut Vec<u8>, field: u32, text: &[u8]) {
    if !text.is_empty() {
        put_item(buffer, field, text);
    }
}

/// Writes a string of a repeated field, even if it is empty.
pub(super) fn put_item(buffer: &mut Vec<u8>, field: u32, text: &[u8]) {
    put_tag(buffer, field, BYTES);
    put_varint(buffer, text.len() as u64);
    buffer.extend_from_slice(text);
}

/// Writes a nested message with the content of `write`. After an error the buffer is invalid.
pub(super) fn put_message<E>(
    buffer: &mut Vec<u8>,
    field: u32,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    put_tag(buffer, field, BYTES);
    let start = buffer.len();
    write(buffer)?;
    // The length precedes the content but is known only after it.
    let end = buffer.len();
    put_varint(buffer, (end - start) as u64);
    let length_bytes = buffer.len() - end;
    buffer[start..].rotate_right(length_bytes);
    Ok(())
}

fn put_tag(buffer: &mut Vec<u8>, field: u32, kind: u64) {
    put_varint(buffer, u64::from(field) << 3 | kind);
}

fn put_varint(buffer: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        buffer.push(value as u8 | 0x80);
        value >>= 7;
    }
    buffer.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields(message: &[u8]) -> Result<Vec<(u64, Content<'_>)>, Malformed> {
        let (mut reader, mut found) = (Fields::of(message), Vec::new());
        while let Some(field) = reader.next()? {
            found.push(field);
        }
        Ok(found)
    }

    fn fields_before_an_error(message: &[u8]) -> Vec<(u64, Content<'_>)> {
        let mut reader = Fields::of(message);
        std::iter::from_fn(|| reader.next().ok().flatten()).collect()
    }

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut buffer = Vec::new();
        write(&mut buffer);
        buffer
    }

    #[test]
    fn numbers_are_written_as_the_format_says() {
        assert_eq!(written(|buffer| put_integer(buffer, 1, 0)), b"");
        assert_eq!(written(|buffer| put_integer(buffer, 1, 150)), [0x08, 0x96, 0x01]);
        let minus_two = [0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(written(|buffer| put_integer(buffer, 1, -2)), minus_two);
        assert_eq!(written(|buffer| put_number(buffer, 16, 1)), [0x80, 0x01, 0x01]);
    }

    #[test]
    fn a_missing_string_is_an_empty_one_unless_it_is_one_of_several() {
        assert_eq!(written(|buffer| put_text(buffer, 2, b"")), b"");
        assert_eq!(written(|buffer| put_item(buffer, 2, b"")), [0x12, 0x00]);
        assert_eq!(written(|buffer| put_text(buffer, 2, b"OK")), *b"\x12\x02OK");
    }

    #[test]
    fn what_is_cut_short_or_out_of_use_is_no_message() {
        for bytes in [
            b"\x0a".as_slice(),
            b"\x0a\x03ab",
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x00\x00",
            b"\x0b\x0c",
            b"\x0f\x00",
            b"\x09\x00\x00",
            b"\x0d\x00\x00",
            b"\x80",
        ] {
            assert_eq!(fields(bytes), Err(Malformed), "{}", bytes.escape_ascii());
        }
        assert_eq!(fields(b"").map(|fields| fields.len()), Ok(0));
    }

    #[test]
    fn unknown_fields_are_passed_over() {
        let bytes = b"\x18\x96\x01\x0a\x01a\x21\0\0\0\0\0\0\0\0\x2d\0\0\0\0";
        let found = fields(bytes).expect("a message");
        assert_eq!(
            found,
            [(3, Content::Number), (1, Content::Bytes(b"a")), (4, Content::Number), (5, Content::Number)]
        );
    }

    proptest! {
        #[test]
        fn what_is_cut_off_changes_nothing_before_it(
            bytes in prop::collection::vec(prop_oneof![0_u8..40, any::<u8>()], 0..200),
            end in any::<prop::sample::Index>(),
        ) {
            let end = end.index(bytes.len() + 1);
            let (whole, part) = (fields_before_an_error(&bytes), fields_before_an_error(&bytes[..end]));
            prop_assert!(whole.starts_with(&part), "{part:?} of {whole:?}");
            let length = |(_, content): &(u64, Content<'_>)| match content {
                Content::Bytes(bytes) => 2 + bytes.len(),
                Content::Number => 2,
            };
            prop_assert!(part.iter().map(length).sum::<usize>() <= end, "{part:?} in {end} bytes");
        }

        #[test]
        fn what_is_written_is_read(
            texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20),
            number in any::<u64>(),
        ) {
            let inner = written(|buffer| {
                texts.iter().for_each(|text| put_item(buffer, 2, text));
                put_number(buffer, 3, number);
            });
            let outer = written(|buffer| {
                put_message::<()>(buffer, 40, |buffer| {
                    buffer.extend_from_slice(&inner);
                    Ok(())
                }).expect("it is written");
            });
            prop_assert_eq!(fields(&outer), Ok(vec![(40, Content::Bytes(&inner))]));
            let mut expected: Vec<_> = texts.iter().map(|text| (2, Content::Bytes(text))).collect();
            if number != 0 {
                expected.push((3, Content::Number));
            }
            prop_assert_eq!(fields(&inner), Ok(expected));
        }
    }
}
