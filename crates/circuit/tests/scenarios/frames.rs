//! Hand-made journals.

/// The header of a journal of the present version with the seed 0.
pub(crate) fn header() -> Vec<u8> {
    let header = [&b"tidemark circuit journal 3\n"[..], &[0; 8]].concat();
    [&header[..], &crc32(&header).to_le_bytes()].concat()
}

/// A frame of this kind with this content and the right checksum.
pub(crate) fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    let content = [&[kind], content].concat();
    let length = u8::try_from(content.len()).ok().filter(|length| *length < 0x80).expect("a short one");
    [&[length], &content[..], &crc32(&content).to_le_bytes()].concat()
}

/// The checksum of IEEE 802.3 (CRC-32), bit by bit.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| if sum & 1 == 1 { sum >> 1 ^ 0xEDB8_8320 } else { sum >> 1 };
    !bytes.iter().fold(u32::MAX, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step))
}
