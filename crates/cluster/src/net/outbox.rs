//! Frames on their way into a socket.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes, BytesMut};

use crate::wire::frame::{self, Channel, Kind};

/// Payloads up to this size are copied behind each other; larger ones are written where they lie.
const COPIED_BYTES: usize = 4 << 10;

/// Frames that are not written yet. As a [`Buf`] it has their bytes in order.
#[derive(Debug)]
pub(super) struct Outbox {
    channel: Channel,
    segments: VecDeque<Bytes>,
    /// What is behind the segments.
    tail: BytesMut,
    bytes: usize,
}

impl Outbox {
    pub(super) fn new(channel: Channel) -> Self {
        Self { channel, segments: VecDeque::new(), tail: BytesMut::new(), bytes: 0 }
    }

    /// Appends a frame.
    pub(super) fn push(&mut self, kind: Kind, sequence: u32, payload: Vec<u8>) {
        let header = frame::header(self.channel, kind, sequence, &payload);
        self.bytes += header.len() + payload.len();
        self.tail.extend_from_slice(&header);
        if payload.len() <= COPIED_BYTES {
            self.tail.extend_from_slice(&payload);
        } else {
            self.segments.push_back(self.tail.split().freeze());
            self.segments.push_back(payload.into());
        }
    }
}

impl Buf for Outbox {
    fn remaining(&self) -> usize {
        self.bytes
    }

    fn chunk(&self) -> &[u8] {
        self.segments.front().map_or(&self.tail[..], |segment| &segment[..])
    }

    fn chunks_vectored<'a>(&'a self, into: &mut [IoSlice<'a>]) -> usize {
        let tail = (!self.tail.is_empty()).then_some(&self.tail[..]);
        let chunks = self.segments.iter().map(|segment| &segment[..]).chain(tail);
        let slots = into.iter_mut().zip(chunks);
        slots.map(|(slot, chunk)| *slot = IoSlice::new(chunk)).count()
    }

    fn advance(&mut self, mut count: usize) {
        self.bytes -= count;
        while let Some(front) = self.segments.front_mut() {
            if front.len() > count {
                front.advance(count);
                return;
            }
            count -= front.len();
            self.segments.pop_front();
        }
        self.tail.advance(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::GroupId;
    use crate::wire::frame::FrameReader;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frames_leave_in_order_however_little_is_taken(
            sizes in proptest::collection::vec(prop_oneof![0_usize..100, 4_000_usize..9_000], 1..12),
            takes in proptest::collection::vec(1_usize..5_000, 1..10),
            vectored: bool,
        ) {
            let mut outbox = Outbox::new(Channel { group: GroupId(1), lane: 1 });
            let mut reader = FrameReader::new(10_000);
            let mut takes = takes.iter().cycle();
            let mut frames = sizes.iter().zip(0_u32..);
            let mut found = Vec::new();
            loop {
                let pushed = frames.next();
                if let Some((size, sequence)) = pushed {
                    outbox.push(Kind::Request, sequence, vec![sequence as u8; *size]);
                }
                let mut take = *takes.next().expect("a cycle");
                let mut taken = Vec::new();
                if vectored {
                    let mut slices = [IoSlice::new(&[]); 8];
                    let count = outbox.chunks_vectored(&mut slices);
                    slices[..count].iter().for_each(|slice| taken.extend_from_slice(slice));
                } else {
                    taken.extend_from_slice(outbox.chunk());
                }
                prop_assert!(outbox.has_remaining() != taken.is_empty());
                take = take.min(taken.len());
                outbox.advance(take);
                reader.buffer().extend_from_slice(&taken[..take]);
                while let Some(frame) = reader.next_frame().expect("frames") {
                    found.push((frame.sequence, frame.payload.len()));
                }
                if pushed.is_none() && !outbox.has_remaining() {
                    break;
                }
            }
            let sent: Vec<(u32, usize)> = (0..).zip(sizes).collect();
            prop_assert_eq!(found, sent);
        }
    }
}
