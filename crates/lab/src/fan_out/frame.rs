//! An emission, read in place: what receives ten thousand of them at once must cost less than who sends them.

use tidemark_server::resp::{Value, encode_value};

/// An emission of a string, in the bytes that it arrived in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) subscription: &'a [u8],
    pub(super) lsn: u64,
    pub(super) seq: u64,
    pub(super) value: &'a [u8],
}

/// The bytes are no emission of a string; where the next one begins is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no emission of a string")]
pub(super) struct Unexpected;

/// Why reading stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Incomplete,
    Unexpected,
}

/// No number and no length takes more digits.
const LINE_BYTES_MAX: usize = 32;
/// No subscription's name and no value that was asked for is longer.
const BULK_BYTES_MAX: usize = 1 << 20;

impl<'a> Frame<'a> {
    /// The emission at the start of `input` and the bytes that it takes; `None` until it is whole.
    pub(super) fn read(input: &'a [u8]) -> Result<Option<(Self, usize)>, Unexpected> {
        let mut cursor = Cursor { rest: input };
        match cursor.emission() {
            Ok(frame) => Ok(Some((frame, input.len() - cursor.rest.len()))),
            Err(Stop::Incomplete) => Ok(None),
            Err(Stop::Unexpected) => Err(Unexpected),
        }
    }

    /// Appends the emission as a server sends it.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let bulk = |text: &[u8]| Value::Bulk(text.to_vec());
        let number = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        let elements = vec![
            bulk(b"emission"),
            bulk(self.subscription),
            number(self.lsn),
            number(self.seq),
            bulk(self.value),
        ];
        encode_value(out, &Value::Push(elements));
    }
}

/// What is left to be read.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn emission(&mut self) -> Result<Frame<'a>, Stop> {
        self.exactly(b">5\r\n$8\r\nemission\r\n")?;
        Ok(Frame {
            subscription: self.bulk()?,
            lsn: self.number(b':')?,
            seq: self.number(b':')?,
            value: self.bulk()?,
        })
    }

    fn exactly(&mut self, expected: &[u8]) -> Result<(), Stop> {
        if let Some(rest) = self.rest.strip_prefix(expected) {
            self.rest = rest;
            return Ok(());
        }
        Err(if expected.starts_with(self.rest) { Stop::Incomplete } else { Stop::Unexpected })
    }

    fn bulk(&mut self) -> Result<&'a [u8], Stop> {
        let length = usize::try_from(self.number(b'$')?).unwrap_or(usize::MAX);
        if length > BULK_BYTES_MAX {
            return Err(Stop::Unexpected);
        }
        let (body, rest) = self.rest.split_at_checked(length).ok_or(Stop::Incomplete)?;
        self.rest = rest;
        self.exactly(b"\r\n")?;
        Ok(body)
    }

    /// A line of this kind with a number that is not negative.
    fn number(&mut self, kind: u8) -> Result<u64, Stop> {
        self.exactly(&[kind])?;
        let (mut number, mut digits) = (0_u64, 0);
        while let Some((byte, rest)) = self.rest.split_first().filter(|_| digits < LINE_BYTES_MAX) {
            if !byte.is_ascii_digit() {
                break;
            }
            let shifted = number.checked_mul(10).and_then(|tens| tens.checked_add(u64::from(byte - b'0')));
            number = shifted.ok_or(Stop::Unexpected)?;
            digits += 1;
            self.rest = rest;
        }
        if digits == 0 && !self.rest.is_empty() {
            return Err(Stop::Unexpected);
        }
        self.exactly(b"\r\n")?;
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::{Frame, Unexpected};
    use proptest::prelude::*;

    proptest! {
        /// Whatever is split, the whole is read, and what follows it is left.
        #[test]
        fn every_beginning_waits_and_the_whole_is_read(
            subscription in proptest::collection::vec(any::<u8>(), 0..20),
            lsn in 0..=i64::MAX as u64,
            seq in 0..=i64::MAX as u64,
            value in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let frame = Frame { subscription: &subscription, lsn, seq, value: &value };
            let mut bytes = Vec::new();
            frame.write(&mut bytes);
            let length = bytes.len();
            for end in 0..length {
                prop_assert_eq!(Frame::read(&bytes[..end]), Ok(None));
            }
            bytes.extend_from_slice(b">5\r\n");
            prop_assert_eq!(Frame::read(&bytes), Ok(Some((frame, length))));
        }

        /// One byte of a frame is another, or is missing: what is read all the same is a frame that is written again.
        #[test]
        fn a_frame_with_a_fault_is_refused_or_another_frame(
            value in proptest::collection::vec(any::<u8>(), 0..40),
            // Another digit must not make a number that RESP cannot write.
            number in 0..=u64::from(u32::MAX),
            place in any::<proptest::sample::Index>(),
            byte in proptest::option::of(any::<u8>()),
        ) {
            let mut bytes = Vec::new();
            Frame { subscription: b"s", lsn: number, seq: number, value: &value }.write(&mut bytes);
            let place = place.index(bytes.len());
            match byte {
                Some(byte) => bytes[place] = byte,
                None => _ = bytes.remove(place),
            }
            if let Ok(Some((frame, length))) = Frame::read(&bytes) {
                prop_assert!(length <= bytes.len());
                let mut again = Vec::new();
                frame.write(&mut again);
                let whole = again.len();
                prop_assert_eq!(Frame::read(&again), Ok(Some((frame, whole))));
            }
        }

        #[test]
        fn bytes_that_are_no_frame_are_not_read_as_one(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let head = b">5\r\n$8\r\nemission\r\n";
            if !bytes.starts_with(head) {
                let waits = head.starts_with(&bytes);
                prop_assert_eq!(Frame::read(&bytes), if waits { Ok(None) } else { Err(Unexpected) });
            }
        }
    }

    #[test]
    fn what_is_no_emission_of_a_string_is_refused() {
        for bytes in [
            &b"+OK\r\n"[..],
            b">4\r\n$5\r\nstale\r\n",
            b">5\r\n$8\r\nemission\r\n$-1\r\n",
            b">5\r\n$8\r\nemission\r\n$1\r\ns\r\n:-1\r\n",
            b">5\r\n$8\r\nemission\r\n$1\r\ns\r\n:99999999999999999999\r\n",
            b">5\r\n$8\r\nemission\r\n$1\r\ns\r\n:1\r\n:1\r\n_\r\n",
            b">5\r\n$8\r\nemission\r\n$99999999\r\n",
            b">5\r\n$8\r\nemission\r\n$1\r\nss\r\n",
        ] {
            assert_eq!(Frame::read(bytes), Err(Unexpected), "{}", String::from_utf8_lossy(bytes));
        }
    }
}
