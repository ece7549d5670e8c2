//! Loom models: the interleavings of small programs, which ordinary tests meet only by chance.
//!
//! `./check models` runs them. Under `cfg(loom)` segments and chunks are tiny, and waiters do not
//! poll before they park.
#![allow(unsafe_code, reason = "the queues are used as the circuit uses them")]

use std::ptr;

use loom::thread;

use super::ingress::{Cursor, Ingress};
use super::lane::{Edge, Reader, Writer, lane};
use super::token::Token;
use crate::models::explore;
use crate::sync::{Arc, hint};

/// Three find nothing more and take ten times as long.
const PREEMPTIONS: usize = 2;

const WORD: usize = 1 << 3;
/// Five words, which take two slots.
const LARGE: usize = 5 << 3;

fn token(bytes: usize) -> Token {
    Token::from_raw(ptr::without_provenance_mut(bytes << 2))
}

fn bytes(token: Token) -> usize {
    token.into_raw().addr() >> 2
}

/// Takes the next entry out, if there is one, and returns its first word.
fn take(queue: &Ingress, cursor: &mut Cursor) -> Option<u64> {
    // SAFETY: there is one cursor, and tokens encode the bytes of their values.
    unsafe {
        let (token, value) = queue.peek(cursor, bytes)?;
        let words = bytes(token) / 8;
        let value: Vec<u64> = (0..words).map(|n| value.cast::<u64>().add(n).read()).collect();
        assert!(value.iter().all(|word| *word == value[0]), "all words of a value are its own");
        queue.advance(cursor);
        Some(value[0])
    }
}

fn push(queue: &Ingress, value: u64) {
    // SAFETY: the token encodes the size.
    unsafe { queue.push(token(WORD), value) };
}

fn push_large(queue: &Ingress, value: u64) {
    // SAFETY: the token encodes the size.
    unsafe { queue.push(token(LARGE), [value; 5]) };
}

/// Takes out `count` entries, and frees memory after each if `settles`.
fn drain(queue: &Ingress, cursor: &mut Cursor, count: usize, settles: bool) -> Vec<u64> {
    let mut seen = Vec::new();
    while seen.len() < count {
        match take(queue, cursor) {
            Some(value) => seen.push(value),
            None => hint::spin_loop(),
        }
        if settles {
            // SAFETY: there is one cursor.
            unsafe { queue.settle(cursor) };
        }
    }
    assert_eq!(take(queue, cursor), None);
    seen
}

/// Values of the producer with this hundred, in the order in which they arrived.
fn of(producer: u64, seen: &[u64]) -> Vec<u64> {
    seen.iter().copied().filter(|value| value / 100 == producer).collect()
}

#[test]
fn loom_two_producers_share_segments_that_end_and_are_used_again() {
    explore(PREEMPTIONS, || {
        let queue = Arc::new(Ingress::new());
        let producers = [1, 2].map(|producer| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || (0..2).for_each(|n| push(&queue, producer * 100 + n)))
        });
        let mut cursor = Cursor::default();
        let seen = drain(&queue, &mut cursor, 4, false);
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        assert_eq!([of(1, &seen), of(2, &seen)], [[100, 101], [200, 201]]);
    });
}

#[test]
fn loom_large_values_go_over_the_end_of_a_segment() {
    explore(PREEMPTIONS, || {
        let queue = Arc::new(Ingress::new());
        let first = Arc::clone(&queue);
        let first = thread::spawn(move || {
            push(&first, 100);
            push_large(&first, 101);
        });
        let second = Arc::clone(&queue);
        let second = thread::spawn(move || push_large(&second, 200));
        let mut cursor = Cursor::default();
        let seen = drain(&queue, &mut cursor, 3, false);
        (first.join().unwrap(), second.join().unwrap());
        assert_eq!([of(1, &seen), of(2, &seen)], [vec![100, 101], vec![200]]);
    });
}

#[test]
fn loom_segments_are_freed_only_where_no_producer_looks() {
    explore(PREEMPTIONS, || {
        let queue = Arc::new(Ingress::new());
        // The queue has segments and a hint before the producers start.
        push(&queue, 0);
        push(&queue, 0);
        let producers = [1, 2].map(|producer| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || push(&queue, producer * 100))
        });
        let mut cursor = Cursor::default();
        let seen = drain(&queue, &mut cursor, 4, true);
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        assert_eq!(seen.iter().sum::<u64>(), 300);
    });
}

#[test]
fn loom_large_values_and_freed_segments() {
    explore(PREEMPTIONS, || {
        let queue = Arc::new(Ingress::new());
        push(&queue, 0);
        let producers = [1, 2].map(|producer| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || match producer {
                1 => push_large(&queue, 100),
                _ => (0..2).for_each(|n| push(&queue, 200 + n)),
            })
        });
        let mut cursor = Cursor::default();
        let seen = drain(&queue, &mut cursor, 4, true);
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        assert_eq!([of(1, &seen), of(2, &seen)], [vec![100], vec![200, 201]]);
    });
}

/// Reads these values from a lane, and checks their order.
fn read(reader: &mut Reader, values: std::ops::Range<u64>) {
    let mut next = values.start;
    while next < values.end {
        let known = reader.known(Edge::Written);
        for _ in 0..known {
            // SAFETY: this many are known, and the token encodes the words.
            unsafe {
                let (token, value) = reader.next(|token| bytes(token) / 8);
                assert_eq!(value.cast::<u64>().read(), next);
                assert_eq!(bytes(token), size(next));
            }
            next += 1;
        }
        reader.consume();
        if known == 0 {
            hint::spin_loop();
        }
    }
}

/// Alternates entries of two words and of six, which need a chunk of their own.
fn size(value: u64) -> usize {
    if value % 3 == 2 { LARGE } else { WORD }
}

fn write(writer: &mut Writer, value: u64) {
    // SAFETY: the token encodes the size.
    unsafe {
        match size(value) {
            LARGE => writer.push(token(LARGE), [value; 5]),
            _ => writer.push(token(WORD), value),
        }
    }
}

#[test]
fn loom_a_lane_goes_from_chunk_to_chunk_and_uses_them_again() {
    explore(PREEMPTIONS, || {
        let (mut writer, mut reader) = lane();
        let producer = thread::spawn(move || (0..6).for_each(|value| write(&mut writer, value)));
        read(&mut reader, 0..6);
        producer.join().unwrap();
        assert!(reader.is_exhausted());
    });
}
