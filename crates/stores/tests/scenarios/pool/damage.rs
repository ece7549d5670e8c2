//! Torn tails and flipped bits in a log: a start accepts no byte that was not written.

use super::support::{Ledger, open, options, serve};
use std::collections::BTreeMap;
use std::sync::Arc;
use tidemark_log::{Format, MemoryStorage, Storage};
use tidemark_pool::Chain;
use tidemark_pool::service::Service;

/// A log, and the pool's chain after each of its frames, by the number of the next draw.
struct Life {
    storage: MemoryStorage,
    segment: String,
    chains: BTreeMap<u64, Chain>,
    ledger: Ledger,
}

/// Writes one segment with a few frames. The service is not stopped, so the log ends with the last
/// frame.
fn life(format: Format) -> Life {
    let storage = MemoryStorage::new();
    let mut chains = BTreeMap::new();
    let opened = open(Arc::new(storage.clone()), &options(format)).expect("a pool");
    chains.insert(0, opened.0.chain);
    let service = serve(opened);
    let mut ledger = Ledger::default();
    for turn in 0..6 {
        assert!(ledger.call(&service, turn));
        note(&service, &mut chains);
    }
    let copy = storage.fork();
    drop(service);
    let names = copy.list().expect("files");
    let segment = names.into_iter().find(|name| name.starts_with("segment-")).expect("one segment");
    Life { segment, storage: copy, chains, ledger }
}

fn note(service: &Service, chains: &mut BTreeMap<u64, Chain>) {
    let state = super::support::state(service);
    chains.insert(state.next_draw, state.chain);
}

/// Opens the log with other bytes. The result is either the pool as it was after one of its frames,
/// of which this returns the next draw's number, or an error.
fn next_draw_with(life: &Life, bytes: Vec<u8>, format: Format, case: &str) -> Result<u64, String> {
    let storage = life.storage.fork();
    storage.put(&life.segment, bytes);
    let opened = open(Arc::new(storage), &options(format)).map_err(|error| error.to_string())?;
    let next = opened.0.pool.next_draw();
    if !opened.2.is_new {
        assert_eq!(life.chains.get(&next), Some(&opened.0.chain), "{case}: a pool that never was");
    }
    Ok(next)
}

/// Returns the end of what was written: the rest of the file is filled with zeros.
fn end_of(bytes: &[u8]) -> usize {
    bytes.len() - bytes.iter().rev().take_while(|&&byte| byte == 0).count()
}

#[test]
fn a_log_that_is_cut_anywhere_is_the_pool_of_the_frames_that_are_whole() {
    for format in Format::ALL {
        let life = life(format);
        let bytes = life.storage.read(&life.segment).expect("a segment");
        let end = end_of(&bytes);
        let mut seen = Vec::new();
        for cut in 0..=end {
            let mut torn = bytes.clone();
            if format == Format::Binary {
                torn[cut..end].fill(0);
            } else {
                torn.truncate(cut);
            }
            // An end that a later marker proves durable is damaged, not torn.
            match next_draw_with(&life, torn, format, &format!("{format}: cut at {cut}")) {
                Ok(next) => seen.push(next),
                Err(error) => assert!(error.contains("damaged"), "{format}: cut at {cut}: {error}"),
            }
        }
        assert!(seen.is_sorted(), "{format}: more bytes are no fewer draws");
        assert_eq!(seen.last(), Some(&(life.ledger.draws.len() as u64)), "{format}");
        seen.dedup();
        assert!(seen.len() > 5, "{format}: only {seen:?}");
    }
}

#[test]
fn no_bit_that_has_changed_makes_another_prize() {
    for format in Format::ALL {
        let life = life(format);
        let bytes = life.storage.read(&life.segment).expect("a segment");
        let (end, acknowledged) = (end_of(&bytes), life.ledger.draws.len() as u64);
        let (mut located, mut cut) = (0, 0);
        for bit in 0..end * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let case = format!("{format}: bit {bit}");
            match next_draw_with(&life, flipped, format, &case) {
                Ok(next) if next < acknowledged => cut += 1,
                Ok(_) => {}
                Err(error) => {
                    located += u32::from(error.contains("at byte"));
                }
            }
        }
        // Frames before a later marker cannot be mistaken for a torn tail.
        assert!(located as usize > end * 4, "{format}: {located} of {} bits are located, {cut} cut", end * 8);
    }
}
