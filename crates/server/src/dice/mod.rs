//! DiceDB's protocol on the RESP port: frames of Protocol Buffers.
//!
//! ```text
//! u32 big-endian length │ wire.Command { 1: name, 2: arguments }          client ─► server
//! u32 big-endian length │ wire.Result { 1: status, 2: message, … body }   server ─► client
//! ```
//!
//! A connection speaks it if its first byte can only begin such a length. Commands are translated
//! to Redis's arguments and run by the dispatcher; the RESP3 answer is translated to the typed body
//! that the client expects.
//!
//! ```text
//! frame ─► request ─► table ─► conversation ─► dispatch (as for RESP) ─► answer ─► body ─► result
//! (length) (protobuf) (names)  (runs it)       (RESP3, in the output)    (reads)   (types) (frame)
//! ```
//!
//! `watch` implements subscriptions. Each belongs to one of a client's connections and is handed
//! over to the one that listens (`directory`, `notice`, `handing`). `form` formats emissions.

mod answer;
mod body;
mod conversation;
mod directory;
mod fingerprint;
mod form;
mod frame;
mod handing;
mod introduction;
mod notice;
mod protobuf;
mod request;
mod result;
mod sorted_sets;
mod table;
mod watch;

pub(crate) use conversation::{Conversation, Step};
pub(crate) use directory::Directory;
pub(crate) use form::Form;
pub(crate) use handing::go_on;
pub(crate) use notice::Notice;

/// Whether a connection that begins with this byte speaks the protocol. A frame's length is at most
/// [`frame::FRAME_LIMIT`], so its first byte is 0, 1 or 2, which RESP never starts with.
pub(crate) fn begins_frame(first: u8) -> bool {
    u32::from(first) <= frame::FRAME_LIMIT >> 24
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_first_byte_distinguishes_the_protocols() {
        for first in 0..=u8::MAX {
            assert_eq!(super::begins_frame(first), first <= 2);
        }
    }
}
