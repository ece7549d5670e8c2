//! Cache of recent answers as JSON for HTTP subscribers, many of which receive the same answer.

use crate::value_json;
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tidemark_engine::SharedBytes;

/// Most answers cached.
const ANSWERS: usize = 64;
/// Most bytes cached, answers and JSON together. The newest answer is cached whatever its size.
const BYTES: usize = 16 << 20;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct JsonCache(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// Oldest first. Holding the answer keeps its address from being reused: answers are compared
    /// by address.
    answers: VecDeque<(SharedBytes, Json)>,
    bytes: usize,
}

/// An answer as JSON.
#[derive(Debug, Clone)]
pub(crate) struct Json(Arc<RawValue>);

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::serialize(&self.0, serializer)
    }
}

impl JsonCache {
    /// Returns the JSON of an answer. Cost: a scan of at most [`ANSWERS`] entries; on a miss,
    /// encoding it.
    pub(crate) fn of(&self, answer: &SharedBytes) -> Json {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Newest first: equal requests mostly arrive close together.
        if let Some((_, json)) = kept.answers.iter().rev().find(|(other, _)| other.is_same(answer)) {
            return json.clone();
        }
        let made =
            serde_json::value::to_raw_value(&Encoded(answer)).expect("every answer has a form in JSON");
        let json = Json(made.into());
        kept.add(answer.clone(), json.clone());
        json
    }
}

impl Kept {
    fn add(&mut self, answer: SharedBytes, json: Json) {
        self.bytes += bytes_of(&answer, &json);
        self.answers.push_back((answer, json));
        while self.answers.len() > ANSWERS || (self.bytes > BYTES && self.answers.len() > 1) {
            let (answer, json) = self.answers.pop_front().expect("there is more than one");
            self.bytes -= bytes_of(&answer, &json);
        }
    }
}

fn bytes_of(answer: &[u8], json: &Json) -> usize {
    answer.len() + json.0.get().len()
}

struct Encoded<'a>(&'a [u8]);

impl Serialize for Encoded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        value_json::serialize(self.0, serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> SharedBytes {
        SharedBytes::from(format!("${}\r\n{text}\r\n", text.len()).as_bytes())
    }

    #[test]
    fn all_receivers_of_an_answer_share_its_json() {
        let shared = JsonCache::default();
        let (one, same, other) = (answer("v"), answer("v"), answer("w"));
        let (first, second, third) = (shared.of(&one), shared.of(&one), shared.of(&other));
        assert!(Arc::ptr_eq(&first.0, &second.0));
        assert_eq!((first.0.get(), third.0.get()), ("\"v\"", "\"w\""));
        assert_eq!(shared.of(&same).0.get(), "\"v\"");
    }

    #[test]
    fn what_is_kept_has_an_end() {
        let shared = JsonCache::default();
        let all: Vec<SharedBytes> = (0..2 * ANSWERS).map(|number| answer(&number.to_string())).collect();
        let first = shared.of(&all[0]);
        all.iter().for_each(|answer| _ = shared.of(answer));
        assert_eq!(shared.0.lock().expect("unpoisoned").answers.len(), ANSWERS);
        assert!(!Arc::ptr_eq(&shared.of(&all[0]).0, &first.0), "it was made anew");
        let (large, other) = (answer(&"x".repeat(BYTES)), answer(&"y".repeat(BYTES)));
        for answer in [&large, &other] {
            assert!(Arc::ptr_eq(&shared.of(answer).0, &shared.of(answer).0), "the newest stays");
            assert_eq!(shared.0.lock().expect("unpoisoned").answers.len(), 1);
        }
    }
}
