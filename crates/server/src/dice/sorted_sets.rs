//! Differences of sorted sets: DiceDB counts ranks from 1 and returns them with each element, and
//! its scores are integers.

use super::body::Rank;
use super::request::Words;
use tidemark_engine::command::parse::is;

/// Up to this magnitude each integer is exact as a float, which Redis's scores are.
const EXACT_SCORES: i64 = 1 << 53;

const NOT_A_RANK: &str = "ERR value is not an integer or out of range";
const SYNTAX: &str = "ERR syntax error";

/// Refuses scores that are not integers. `words` is a whole `ZADD`.
pub(super) fn check_scores(words: &Words<'_>) -> Result<(), String> {
    let is_option = |word: &&&[u8]| ["NX", "XX", "GT", "LT", "CH", "INCR"].iter().any(|name| is(word, name));
    let options = words.iter().skip(2).take_while(is_option).count();
    for score in words.iter().skip(2 + options).step_by(2) {
        if !integer(score).is_some_and(|score| (-EXACT_SCORES..=EXACT_SCORES).contains(&score)) {
            return Err(format!("ERR a score is not an integer between -{EXACT_SCORES} and {EXACT_SCORES}"));
        }
    }
    Ok(())
}

/// Arguments of Redis's `ZRANGE`, and the rank of the first element.
#[derive(Debug, PartialEq)]
pub(super) struct Range {
    pub(super) start: Vec<u8>,
    pub(super) stop: Vec<u8>,
    pub(super) by_score: bool,
    pub(super) first: FirstRank,
}

/// Rank of the first element of a range.
#[derive(Debug, PartialEq)]
pub(super) enum FirstRank {
    Is(i64),
    /// Distance from the end: -1 is the last element.
    FromEnd(i64),
    /// One more than the number of elements with scores below this bound, in the form of `ZCOUNT`.
    Above(Vec<u8>),
}

/// Parses `ZRANGE key start stop [BYSCORE | BYRANK]`.
pub(super) fn range(words: &Words<'_>) -> Result<Range, &'static str> {
    let (start, stop, by_score) = match words.as_slice() {
        [_, _, start, stop] => (*start, *stop, false),
        [_, _, start, stop, option] if is(option, "BYRANK") => (*start, *stop, false),
        [_, _, start, stop, option] if is(option, "BYSCORE") => (*start, *stop, true),
        [_, _, _, _, _, ..] => return Err(SYNTAX),
        _ => return Err("ERR wrong number of arguments for 'zrange' command"),
    };
    if by_score {
        let bound = match start {
            // Scores up to an exclusive bound are below the range.
            [b'(', bound @ ..] => bound.to_vec(),
            bound => [b"(", bound].concat(),
        };
        let (start, stop) = (start.to_vec(), stop.to_vec());
        return Ok(Range { start, stop, by_score, first: FirstRank::Above(bound) });
    }
    let (start, stop) = (integer(start).ok_or(NOT_A_RANK)?, integer(stop).ok_or(NOT_A_RANK)?);
    let first = if start < 0 { FirstRank::FromEnd(start) } else { FirstRank::Is(start.max(1)) };
    let index = |rank: i64| if rank > 0 { rank - 1 } else { rank }.to_string().into_bytes();
    Ok(Range { start: index(start), stop: index(stop), by_score, first })
}

impl FirstRank {
    /// Returns the rank. `count` is the number of all elements, or of those below the bound.
    pub(super) fn resolve(&self, count: i64) -> Rank {
        Rank::Ascending(match self {
            FirstRank::Is(rank) => *rank,
            FirstRank::FromEnd(distance) => count.saturating_add(*distance).max(0).saturating_add(1),
            FirstRank::Above(_) => count.saturating_add(1),
        })
    }
}

fn integer(word: &[u8]) -> Option<i64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Words<'_> {
        line.split(' ').map(str::as_bytes).collect()
    }

    #[test]
    fn only_integer_scores_are_taken() {
        for line in ["ZADD k 1 a", "ZADD k NX ch -5 a +7 nx", "ZADD k incr 9007199254740992 a", "ZADD k"] {
            assert_eq!(check_scores(&words(line)), Ok(()), "{line}");
        }
        for line in
            ["ZADD k 1.5 a", "ZADD k 1 a x b", "ZADD k inf a", "ZADD k 9007199254740993 a", "ZADD k 1 a NX"]
        {
            assert!(check_scores(&words(line)).is_err(), "{line}");
        }
    }

    #[test]
    fn ranks_become_indices() {
        for (line, start, stop, first) in [
            ("ZRANGE k 1 3", "0", "2", FirstRank::Is(1)),
            ("ZRANGE k 0 -1 byrank", "0", "-1", FirstRank::Is(1)),
            ("ZRANGE k 4 2", "3", "1", FirstRank::Is(4)),
            ("ZRANGE k -2 -1", "-2", "-1", FirstRank::FromEnd(-2)),
        ] {
            let range = range(&words(line)).expect(line);
            assert_eq!((range.start.as_slice(), range.stop.as_slice()), (start.as_bytes(), stop.as_bytes()));
            assert_eq!((range.first, range.by_score), (first, false), "{line}");
        }
        assert!(range(&words("ZRANGE k a 1")).is_err());
        assert!(range(&words("ZRANGE k 0 1 REV")).is_err());
        assert!(range(&words("ZRANGE k 0")).is_err());
    }

    #[test]
    fn the_first_rank_follows_from_a_count() {
        let above = |line| range(&words(line)).expect(line).first;
        assert_eq!(above("ZRANGE k 5 9 BYSCORE"), FirstRank::Above(b"(5".to_vec()));
        assert_eq!(above("ZRANGE k (5 9 BYSCORE"), FirstRank::Above(b"5".to_vec()));
        assert_eq!(above("ZRANGE k 5 9 BYSCORE").resolve(3), Rank::Ascending(4));
        assert_eq!(FirstRank::FromEnd(-2).resolve(5), Rank::Ascending(4));
        assert_eq!(FirstRank::FromEnd(-9).resolve(5), Rank::Ascending(1));
    }
}
