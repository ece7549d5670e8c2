//! Frames: how inputs are delimited and damage is detected.

use std::io::{self, ErrorKind, Read, Write};

use super::recorded::write_number;

/// Start of a journal, before the digit of its version and a newline.
const MAGIC: &[u8] = b"tidemark circuit journal ";

/// The version that is written. All versions from 1 on are read: each has all frames of the one
/// before.
pub(super) const VERSION: u8 = 4;

const _: () = assert!(VERSION < 10, "a version is one digit");

/// Returns the header of a journal: magic, version, seed, and a checksum of these.
pub(super) fn header(seed: u64) -> Vec<u8> {
    header_of(VERSION, seed)
}

fn header_of(version: u8, seed: u64) -> Vec<u8> {
    let mut header = [MAGIC, &[b'0' + version, b'\n'], &seed.to_le_bytes()].concat();
    header.extend(crc32(&header).to_le_bytes());
    header
}

pub(super) const HEADER_BYTES: usize = MAGIC.len() + 2 + 8 + 4;

/// Longer lengths are treated as damage.
const FRAME_BYTES_MAX: u64 = 1 << 30;

/// Result of reading a header.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// A journal with this seed.
    Journal(u64),
    /// A journal of this unsupported version.
    OtherVersion(char),
    /// Not a journal.
    NoJournal,
}

/// Reads a journal's header. Later versions must have the same layout, or they are reported as
/// damaged.
pub(super) fn read_header(from: &mut impl Read) -> Result<Beginning, NoFrame> {
    let mut bytes = [0; HEADER_BYTES];
    match from.read_exact(&mut bytes) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Beginning::NoJournal),
        other => other?,
    }
    let Some([version, _, rest @ ..]) = bytes.strip_prefix(MAGIC) else { return Ok(Beginning::NoJournal) };
    let Some(seed) = rest.first_chunk() else { return Ok(Beginning::NoJournal) };
    let (seed, version) = (u64::from_le_bytes(*seed), version.wrapping_sub(b'0'));
    if header_of(version.min(9), seed) != bytes {
        return Err(NoFrame::Damaged);
    }
    Ok(match version {
        1..=VERSION => Beginning::Journal(seed),
        _ => Beginning::OtherVersion(char::from(b'0' + version)),
    })
}

/// Kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// The next text.
    Text = 1,
    /// Time, label, name or nothing, value.
    Emit = 2,
    /// Time, label of the conduit, label of the subscriber, number of the subscription.
    Subscribe = 3,
    /// Time, number of the subscription.
    Unsubscribe = 4,
    /// Time, label.
    CloseConduit = 5,
    /// Time, label.
    CloseSubscriber = 6,
    /// Time.
    CloseCircuit = 7,
    /// Time, text: an input that was not recorded because its component had no label.
    Unlabelled = 8,
    /// Number of inputs. Nothing follows.
    End = 9,
    /// Time, label of the port, value: the port is set to a value, or an update has made this one.
    Replace = 10,
    /// Time, label of the port, text itself: an update has panicked with this message.
    Fail = 11,
    /// Time, label of the port or basin, label of the target, name or nothing: its content is
    /// requested.
    Send = 12,
    /// As `Subscribe`, with a callback for its end.
    SubscribeWith = 13,
    /// Time, label: the close of a subscription that existed before the recording.
    CloseSubscription = 14,
    /// Time, label of the conduit, number of the subscription, capacity: a reservoir, or a stream,
    /// begins.
    Reservoir = 15,
    /// Label of a sink, its number and that of the circuit's own context in the captures that
    /// follow. Not an input.
    Origin = 16,
    /// Time, label.
    CloseBank = 17,
}

impl Kind {
    pub(super) fn of(byte: u8) -> Option<Self> {
        let all = [
            Self::Text,
            Self::Emit,
            Self::Subscribe,
            Self::Unsubscribe,
            Self::CloseConduit,
            Self::CloseSubscriber,
            Self::CloseCircuit,
            Self::Unlabelled,
            Self::End,
            Self::Replace,
            Self::Fail,
            Self::Send,
            Self::SubscribeWith,
            Self::CloseSubscription,
            Self::Reservoir,
            Self::Origin,
            Self::CloseBank,
        ];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Writes a frame with this content, which begins with its kind.
pub(super) fn write(content: &[u8], to: &mut impl Write) -> io::Result<()> {
    if content.len() as u64 > FRAME_BYTES_MAX {
        return Err(io::Error::new(
            ErrorKind::InvalidInput,
            "a value of more than a gigabyte cannot be recorded",
        ));
    }
    let mut length = Vec::with_capacity(5);
    write_number(content.len() as u64, &mut length);
    to.write_all(&length)?;
    to.write_all(content)?;
    to.write_all(&crc32(content).to_le_bytes())
}

/// Why no frame was read.
#[derive(Debug)]
pub(super) enum NoFrame {
    /// The journal ends here, between two frames.
    End,
    /// The journal ends within a frame.
    Torn,
    Damaged,
    /// The frame is longer than allowed.
    TooLong,
    Io(io::Error),
}

impl From<io::Error> for NoFrame {
    fn from(error: io::Error) -> Self {
        if error.kind() == ErrorKind::UnexpectedEof { Self::Torn } else { Self::Io(error) }
    }
}

/// Reads the content of the next frame into `content`, up to `bytes_max` bytes, and returns the
/// size of the frame.
pub(super) fn read(from: &mut impl Read, content: &mut Vec<u8>, bytes_max: u64) -> Result<u64, NoFrame> {
    let (length, length_bytes) = read_length(from)?;
    if length == 0 || length > FRAME_BYTES_MAX {
        return Err(NoFrame::Damaged);
    }
    if length > bytes_max {
        return Err(NoFrame::TooLong);
    }
    content.clear();
    // Reserves only as much memory as there are bytes, whatever the length says.
    if from.by_ref().take(length).read_to_end(content)? as u64 != length {
        return Err(NoFrame::Torn);
    }
    let mut sum = [0; 4];
    from.read_exact(&mut sum)?;
    if u32::from_le_bytes(sum) != crc32(content) {
        return Err(NoFrame::Damaged);
    }
    Ok(length_bytes + length + 4)
}

fn read_length(from: &mut impl Read) -> Result<(u64, u64), NoFrame> {
    let (mut length, mut count) = (0, 0);
    loop {
        let mut byte = [0];
        match from.read(&mut byte) {
            Ok(0) => return Err(if count == 0 { NoFrame::End } else { NoFrame::Torn }),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        }
        length |= u64::from(byte[0] & 0x7F) << (7 * count);
        count += 1;
        if byte[0] & 0x80 == 0 {
            return Ok((length, count));
        }
        if count == 5 {
            return Err(NoFrame::Damaged);
        }
    }
}

/// CRC-32 of IEEE 802.3.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let mut value = index as u32;
            let mut bit = 0;
            while bit < 8 {
                value = if value & 1 == 1 { value >> 1 ^ 0xEDB8_8320 } else { value >> 1 };
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };
    !bytes.iter().fold(u32::MAX, |sum, byte| sum >> 8 ^ TABLE[usize::from(sum as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn a_header_distinguishes_versions_damage_and_foreign_data() {
        let read = |bytes: &[u8]| read_header(&mut &bytes[..]);
        for version in 1..=VERSION {
            assert_eq!(read(&header_of(version, 7)).expect("whole"), Beginning::Journal(7));
        }
        for version in [0, VERSION + 1, 9] {
            let digit = char::from(b'0' + version);
            assert_eq!(read(&header_of(version, 7)).expect("whole"), Beginning::OtherVersion(digit));
        }
        let whole = header(7);
        assert_eq!(read(&whole[1..]).expect("readable"), Beginning::NoJournal);
        assert_eq!(read(&[b'x'; HEADER_BYTES]).expect("readable"), Beginning::NoJournal);
        for bit in MAGIC.len() * 8..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(read(&damaged), Err(NoFrame::Damaged)), "{bit}");
        }
    }

    #[test]
    fn damage_and_a_torn_end_are_distinguished() {
        let mut whole = Vec::new();
        write(b"\x02hello", &mut whole).expect("memory");
        let mut content = Vec::new();
        assert_eq!(read(&mut &whole[..], &mut content, FRAME_BYTES_MAX).expect("whole"), whole.len() as u64);
        assert_eq!(content, b"\x02hello");
        assert!(matches!(read(&mut &[][..], &mut content, FRAME_BYTES_MAX), Err(NoFrame::End)));
        assert!(matches!(read(&mut &whole[..], &mut content, 5), Err(NoFrame::TooLong)));
        for end in 1..whole.len() {
            assert!(
                matches!(read(&mut &whole[..end], &mut content, FRAME_BYTES_MAX), Err(NoFrame::Torn)),
                "{end}"
            );
        }
        for bit in 8..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(
                matches!(read(&mut &damaged[..], &mut content, FRAME_BYTES_MAX), Err(NoFrame::Damaged)),
                "{bit}"
            );
        }
    }
}
