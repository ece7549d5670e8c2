//! Drops what is left in the queues of a machine.
#![allow(unsafe_code, reason = "see the parent module")]

use super::state::Machine;
use crate::execution::node;
use crate::execution::queue::token::{Entry, Token};
use crate::execution::queue::values::{value_bytes, value_words};
use crate::failure::thrown::shielded;

impl Drop for Machine {
    fn drop(&mut self) {
        let inside = self.inside.get_mut();
        let cursor = &mut inside.cursor;
        let mut released = Vec::new();
        let mut drop_entry = |token: Token, value: *mut u8| match token.entry() {
            // SAFETY: nodes are freed after both queues were emptied; the value is dropped here and nowhere else.
            Entry::Emission(node) => unsafe { node::discard_value(node, value) },
            Entry::Release(node) => released.push(node),
            // SAFETY: the token owned the job.
            Entry::Job(job) => shielded(|| drop(unsafe { Box::from_raw(job) })),
            Entry::Close | Entry::Barrier => {}
        };
        // SAFETY: no other thread has a reference to the machine.
        unsafe {
            if !self.lanes.is_empty() {
                let readers = inside.readers.get_or_insert_default();
                readers.refresh(&self.lanes);
                while let Some((reader, count)) = readers.before_barrier(&self.lanes) {
                    for _ in 0..count {
                        let (token, value) = reader.next(value_words);
                        drop_entry(token, value);
                    }
                }
            }
            while !inside.transit.is_empty() {
                let (token, value) = inside.transit.take(value_words);
                drop_entry(token, value);
            }
            match self.bounds.as_ref().and_then(|bounds| bounds.latest()) {
                None => {
                    while let Some((token, value)) = self.ingress.peek(cursor, value_bytes) {
                        drop_entry(token, value);
                        self.ingress.advance(cursor);
                    }
                }
                Some(latest) => {
                    while let Some((token, value)) = latest.take() {
                        drop_entry(token, value);
                    }
                }
            }
        }
        for node in released {
            // SAFETY: as above.
            unsafe { node::free_node(node) };
        }
    }
}
