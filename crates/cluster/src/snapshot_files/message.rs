//! Requests of a sender and answers of a receiver.

use super::fields::{Fields, put_bytes};
use super::file_list::{FILES_MAX, FileList};

/// Largest content of a chunk.
pub(super) const CHUNK_BYTES_MAX: usize = 1 << 20;

/// Longest reason of a refusal that is read.
const REASON_CHARS: usize = 300;

/// What a sender asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request<'a> {
    /// Takes up a transfer of these files.
    Offer(FileList),
    /// The bytes of a file at an offset.
    Chunk { transfer: u128, file: u32, offset: u64, bytes: &'a [u8] },
    /// All files are sent.
    Finish { transfer: u128 },
}

/// What a receiver answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// To an offer: how many bytes of each file are there already.
    Held(Vec<u64>),
    /// To a chunk: how many bytes of its file are there now.
    Took { held: u64 },
    /// To a finish: all files are there, verified and durable.
    Done,
    /// The transfer is not known: offer it again.
    Unknown,
    /// The transfer is not possible, with the reason. Nothing of it is kept.
    Refused { is_full: bool, reason: String },
}

/// Returns a request that changes nothing: its answer shows that a receiver is there.
pub(crate) fn probe() -> Vec<u8> {
    Request::Finish { transfer: 0 }.encode()
}

impl Request<'_> {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Offer(list) => [&[1], &list.encode()[..]].concat(),
            Self::Chunk { transfer, file, offset, bytes } => {
                let mut message = Vec::with_capacity(29 + bytes.len());
                message.push(2);
                message.extend_from_slice(&transfer.to_le_bytes());
                message.extend_from_slice(&file.to_le_bytes());
                message.extend_from_slice(&offset.to_le_bytes());
                message.extend_from_slice(bytes);
                message
            }
            Self::Finish { transfer } => [&[3], &transfer.to_le_bytes()[..]].concat(),
        }
    }
}

impl<'a> Request<'a> {
    /// Reads what [`encode`](Self::encode) wrote. The error is one sentence.
    pub(super) fn decode(message: &'a [u8]) -> Result<Self, String> {
        const CUT: &str = "a message about files is cut";
        let mut fields = Fields::new(message);
        let request = match fields.u8() {
            Some(1) => Self::Offer(FileList::decode(&mut fields)?),
            Some(2) => {
                let transfer = fields.u128().ok_or(CUT)?;
                let file = fields.u32().ok_or(CUT)?;
                let offset = fields.u64().ok_or(CUT)?;
                let bytes = fields.rest();
                if bytes.len() > CHUNK_BYTES_MAX {
                    return Err(format!(
                        "a chunk of {} bytes is larger than the limit of {CHUNK_BYTES_MAX} bytes",
                        bytes.len()
                    ));
                }
                return Ok(Self::Chunk { transfer, file, offset, bytes });
            }
            Some(3) => Self::Finish { transfer: fields.u128().ok_or(CUT)? },
            _ => return Err("a message about files has an unknown kind".to_owned()),
        };
        if fields.rest().is_empty() {
            Ok(request)
        } else {
            Err("a message about files is too long".to_owned())
        }
    }
}

impl Answer {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Held(held) => {
                let mut message = vec![1];
                message.extend(held.iter().flat_map(|held| held.to_le_bytes()));
                message
            }
            Self::Took { held } => [&[2], &held.to_le_bytes()[..]].concat(),
            Self::Done => vec![3],
            Self::Unknown => vec![4],
            Self::Refused { is_full, reason } => {
                let mut message = vec![5, u8::from(*is_full)];
                put_bytes(&mut message, reason.as_bytes());
                message
            }
        }
    }

    /// Reads what [`encode`](Self::encode) wrote.
    pub(super) fn decode(message: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(message);
        let answer = match fields.u8()? {
            1 => {
                let (held, rest) = fields.rest().as_chunks();
                let is_possible = rest.is_empty() && held.len() <= FILES_MAX;
                return is_possible
                    .then(|| Self::Held(held.iter().map(|held| u64::from_le_bytes(*held)).collect()));
            }
            2 => Self::Took { held: fields.u64()? },
            3 => Self::Done,
            4 => Self::Unknown,
            5 => {
                let is_full = fields.u8()? == 1;
                let reason = String::from_utf8_lossy(fields.bytes()?);
                let reason = reason.chars().filter(|char| !char.is_control()).take(REASON_CHARS).collect();
                Self::Refused { is_full, reason }
            }
            _ => return None,
        };
        fields.rest().is_empty().then_some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn chunks_are_read_as_they_are_written(
            transfer: u128, file: u32, offset: u64, bytes in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let chunk = Request::Chunk { transfer, file, offset, bytes: &bytes };
            let finish = Request::Finish { transfer };
            for request in [chunk, finish] {
                let message = request.encode();
                prop_assert_eq!(Request::decode(&message), Ok(request));
            }
        }

        #[test]
        fn answers_are_read_as_they_are_written(
            held in proptest::collection::vec(any::<u64>(), 0..9), is_full: bool, reason in "[a-z ]{0,40}",
        ) {
            let answers = [
                Answer::Took { held: held.first().copied().unwrap_or(7) },
                Answer::Held(held),
                Answer::Done,
                Answer::Unknown,
                Answer::Refused { is_full, reason },
            ];
            for answer in answers {
                prop_assert_eq!(Answer::decode(&answer.encode()), Some(answer));
            }
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Request::decode(&bytes);
            let _ = Answer::decode(&bytes);
        }
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let bytes = vec![0; CHUNK_BYTES_MAX + 1];
        let chunk = Request::Chunk { transfer: 1, file: 0, offset: 0, bytes: &bytes };
        assert!(
            Request::decode(&chunk.encode()).expect_err("a large chunk").contains("larger than the limit")
        );
        assert_eq!(Answer::decode(&[&[1][..], &vec![0; 8 * (FILES_MAX + 1)]].concat()), None);
        assert!(Request::decode(&[&Request::Finish { transfer: 1 }.encode()[..], &[0]].concat()).is_err());
    }
}
