//! A session of `ONCE`: the newest numbers under which a client had commands executed, and their
//! answers.
//!
//! ```text
//!            lost to the session          │ the window: its newest 128 numbers
//!  … 168  169  170  171  172  173         │ 174  175  176 … 297  298  299  300
//!  whether they were executed is unknown  │ executed, with an answer; or not executed
//! ```

use super::{InParts, Value};
use crate::persist::record::{Cursor, put_bytes, put_varint};
use crate::wire::reply::Protocol;
use std::collections::VecDeque;
use xxhash_rust::xxh3::xxh3_64;

/// How many of its newest numbers a session remembers.
pub const SESSION_WINDOW: u64 = 128;

/// Maximum bytes of a session's answers together.
pub const SESSION_ANSWERS_BYTES: usize = 64 << 10;

/// Milliseconds after its last new number at which a session ends.
pub const SESSION_LIFE_MS: u64 = 24 * 60 * 60 * 1000;

/// The executed numbers in the window of a session, of which there is at least one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OnceSession {
    /// In the order of their numbers. The last one is the newest.
    executed: VecDeque<NumberedAnswer>,
    /// Bytes of all answers.
    bytes: usize,
}

/// A number, what was executed under it, and the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedAnswer {
    /// The number.
    pub number: u64,
    /// Digest of the command or transaction.
    pub digest: u64,
    /// The answer.
    pub answer: NotedAnswer,
}

/// An answer, as far as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotedAnswer {
    /// It is too long to be kept, or was dropped for newer ones.
    Dropped,
    /// It is kept.
    Kept {
        /// The protocol of the connection that executed the command.
        protocol: Protocol,
        /// The answer in this protocol.
        bytes: Box<[u8]>,
    },
}

/// What a session knows of a number.
#[derive(Debug, PartialEq, Eq)]
pub enum Known<'s> {
    /// Nothing was executed under it.
    New,
    /// This was executed under it.
    Executed(&'s NumberedAnswer),
    /// Whether something was executed under it is not known any more: it is below the window.
    Lost {
        /// The newest number.
        newest: u64,
    },
}

impl OnceSession {
    /// Returns what is known of a number. O(log [`SESSION_WINDOW`]).
    pub fn look(&self, number: u64) -> Known<'_> {
        let newest = self.executed.back().map_or(0, |last| last.number);
        if is_below_window(number, newest) {
            return Known::Lost { newest };
        }
        match self.place(number) {
            Ok(at) => Known::Executed(&self.executed[at]),
            Err(_) => Known::New,
        }
    }

    /// Notes what was executed under a new number. Forgets the numbers that leave the window, and the
    /// oldest answers beyond [`SESSION_ANSWERS_BYTES`]. Returns whether the number was new.
    pub fn note(&mut self, executed: NumberedAnswer) -> bool {
        if self.look(executed.number) != Known::New {
            return false;
        }
        let number = executed.number;
        let at = self.place(number).unwrap_or_else(|at| at);
        self.executed.insert(at, executed);
        self.bytes += self.executed[at].kept_bytes();
        let newest = self.executed.back().map_or(number, |last| last.number);
        while let Some(left) = self.executed.pop_front_if(|first| is_below_window(first.number, newest)) {
            self.bytes -= left.kept_bytes();
        }
        self.shorten(number);
        true
    }

    /// Drops the oldest answers until the others have at most [`SESSION_ANSWERS_BYTES`]. That of `number` comes
    /// last, because its client has not had it yet.
    fn shorten(&mut self, number: u64) {
        let (others, own): (Vec<usize>, Vec<usize>) =
            (0..self.executed.len()).partition(|at| self.executed[*at].number != number);
        for at in others.into_iter().chain(own) {
            if self.bytes <= SESSION_ANSWERS_BYTES {
                return;
            }
            self.bytes -= self.executed[at].kept_bytes();
            self.executed[at].answer = NotedAnswer::Dropped;
        }
    }

    fn place(&self, number: u64) -> Result<usize, usize> {
        self.executed.binary_search_by_key(&number, |executed| executed.number)
    }
}

fn is_below_window(number: u64, newest: u64) -> bool {
    newest.saturating_sub(number) >= SESSION_WINDOW
}

impl NumberedAnswer {
    fn kept_bytes(&self) -> usize {
        match &self.answer {
            NotedAnswer::Dropped => 0,
            NotedAnswer::Kept { bytes, .. } => bytes.len(),
        }
    }
}

impl NotedAnswer {
    /// Appends the protocol as a byte, 0 if the answer was dropped, and the answer.
    pub(crate) fn encode(&self, into: &mut Vec<u8>) {
        let (kind, bytes): (u8, &[u8]) = match self {
            Self::Dropped => (0, &[]),
            Self::Kept { protocol: Protocol::Resp2, bytes } => (2, bytes),
            Self::Kept { protocol: Protocol::Resp3, bytes } => (3, bytes),
        };
        into.push(kind);
        into.extend_from_slice(bytes);
    }

    /// Parses what [`NotedAnswer::encode`] appends; `None` if it is malformed.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, bytes) = bytes.split_first()?;
        let protocol = match kind {
            0 => return bytes.is_empty().then_some(Self::Dropped),
            2 => Protocol::Resp2,
            3 => Protocol::Resp3,
            _ => return None,
        };
        Some(Self::Kept { protocol, bytes: bytes.into() })
    }
}

impl Value for OnceSession {
    fn is_empty(&self) -> bool {
        self.executed.is_empty()
    }

    fn elements(&self) -> usize {
        self.executed.len()
    }

    fn encoding(&self) -> &'static str {
        "once-session"
    }

    fn in_parts(&self) -> Option<&dyn InParts> {
        None
    }

    fn in_parts_mut(&mut self) -> Option<&mut dyn InParts> {
        None
    }

    /// ```text
    /// count varint │ (number varint │ digest u64 │ length varint │ protocol u8 │ answer)*
    /// ```
    fn encode(&self, into: &mut Vec<u8>) {
        put_varint(into, self.executed.len() as u64);
        let mut answer = Vec::new();
        for executed in &self.executed {
            put_varint(into, executed.number);
            into.extend_from_slice(&executed.digest.to_le_bytes());
            answer.clear();
            executed.answer.encode(&mut answer);
            put_bytes(into, &answer);
        }
    }

    fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        let count = bytes.varint().filter(|count| (1..=SESSION_WINDOW).contains(count))?;
        let mut executed: VecDeque<NumberedAnswer> = VecDeque::with_capacity(count as usize);
        for _ in 0..count {
            let number = bytes.varint()?;
            let is_next = executed.back().map_or(number > 0, |last| last.number < number);
            let digest = bytes.u64().filter(|_| is_next)?;
            executed.push_back(NumberedAnswer {
                number,
                digest,
                answer: NotedAnswer::decode(bytes.bytes()?)?,
            });
        }
        let total: usize = executed.iter().map(NumberedAnswer::kept_bytes).sum();
        let (first, last) = (executed.front()?.number, executed.back()?.number);
        (total <= SESSION_ANSWERS_BYTES && !is_below_window(first, last))
            .then_some(Self { executed, bytes: total })
    }

    fn digest(&self) -> u64 {
        let mut form = Vec::new();
        self.encode(&mut form);
        xxh3_64(&form)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persist::damage;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn executed(number: u64, length: usize) -> NumberedAnswer {
        let answer = NotedAnswer::Kept { protocol: Protocol::Resp2, bytes: vec![b'a'; length].into() };
        NumberedAnswer { number, digest: number.wrapping_mul(7), answer }
    }

    fn session(numbers: impl IntoIterator<Item = (u64, usize)>) -> OnceSession {
        let mut session = OnceSession::default();
        for (number, length) in numbers {
            session.note(executed(number, length));
        }
        session
    }

    fn kept(session: &OnceSession, number: u64) -> bool {
        matches!(
            session.look(number),
            Known::Executed(NumberedAnswer { answer: NotedAnswer::Kept { .. }, .. })
        )
    }

    #[test]
    fn a_number_is_new_until_it_is_executed_and_lost_once_it_is_below_the_window() {
        let mut session = OnceSession::default();
        assert_eq!(session.look(1), Known::New);
        assert!(session.note(executed(300, 1)) && !session.note(executed(300, 1)), "once");
        assert_eq!(session.look(300), Known::Executed(&executed(300, 1)));
        assert_eq!((session.look(301), session.look(173)), (Known::New, Known::New));
        assert_eq!(session.look(172), Known::Lost { newest: 300 });
        assert!(!session.note(executed(172, 1)) && session.note(executed(173, 1)));
        assert!(session.note(executed(301, 1)));
        assert_eq!(session.look(173), Known::Lost { newest: 301 }, "the window has moved");
        assert!(session.note(executed(u64::MAX, 1)));
        assert_eq!(session.elements(), 1);
    }

    #[test]
    fn the_oldest_answers_go_first_and_the_newest_last() {
        let mut session = session([(2, 30_000), (3, 30_000), (4, 10)]);
        assert!(session.note(executed(5, 30_000)));
        assert_eq!([2, 3, 4, 5].map(|number| kept(&session, number)), [false, true, true, true]);
        // It arrives late, and its client waits for it.
        assert!(session.note(executed(1, SESSION_ANSWERS_BYTES)));
        assert_eq!([1, 3, 4, 5].map(|number| kept(&session, number)), [true, false, false, false]);
        assert!(session.note(executed(6, SESSION_ANSWERS_BYTES + 1)));
        assert_eq!([1, 6].map(|number| kept(&session, number)), [false, false], "it is too long by itself");
        assert!(matches!(session.look(6), Known::Executed(_)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_session_is_as_a_map_of_its_window(
            numbers in proptest::collection::vec((1_u64..600, 0_usize..3_000), 1..300),
        ) {
            let (mut session, mut model, mut newest) = (OnceSession::default(), BTreeMap::new(), 0);
            for (number, length) in numbers {
                let is_new = number + SESSION_WINDOW > newest && !model.contains_key(&number);
                prop_assert_eq!(session.note(executed(number, length)), is_new);
                if is_new {
                    model.insert(number, length);
                    newest = newest.max(number);
                }
                for number in 1..600 {
                    let expected = match model.get(&number) {
                        _ if number + SESSION_WINDOW <= newest => 'l',
                        Some(_) => 'e',
                        None => 'n',
                    };
                    let found = match session.look(number) {
                        Known::Lost { .. } => 'l',
                        Known::Executed(_) => 'e',
                        Known::New => 'n',
                    };
                    prop_assert_eq!(found, expected);
                }
                let bytes: usize = session.executed.iter().map(NumberedAnswer::kept_bytes).sum();
                prop_assert!(bytes == session.bytes && bytes <= SESSION_ANSWERS_BYTES);
            }
            let mut form = Vec::new();
            session.encode(&mut form);
            let again = OnceSession::decode(&mut Cursor::new(&form));
            prop_assert_eq!(again.as_ref(), Some(&session));
            for cut in 0..form.len().min(200) {
                prop_assert!(OnceSession::decode(&mut Cursor::new(&form[..cut])).is_none());
            }
        }

        #[test]
        fn any_bytes_are_a_session_or_refused(bytes in damage::bytes(200)) {
            if let Some(session) = OnceSession::decode(&mut Cursor::new(&bytes)) {
                let mut form = Vec::new();
                session.encode(&mut form);
                prop_assert_eq!(OnceSession::decode(&mut Cursor::new(&form)), Some(session));
            }
        }
    }
}
