//! Many concurrent threads that call in all three ways, checked against a ledger.

use super::scenarios::block_on;
use super::support::{again, items, pool, state};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tidemark_pool::journal::MemoryJournal;
use tidemark_pool::service::{Answer, CallError, Request, Service, Settings};
use tidemark_pool::{Draw, Repeats, Stock};

const THREADS: usize = 12;
const CALLS: usize = 400;

/// The item of each draw that any caller received, by the draw's number.
type Ledger = Arc<Mutex<BTreeMap<u64, Option<u32>>>>;

fn note(ledger: &Ledger, draw: Draw) {
    let before = ledger.lock().expect("a ledger").insert(draw.number, draw.item);
    assert_eq!(before, None, "no two callers get the same draw");
}

fn one_thread(service: &Service, ledger: &Ledger, thread: usize) {
    let mut under_way = Vec::new();
    for call in 0..CALLS {
        match (thread + call) % 5 {
            0 => note(ledger, service.draw().expect("a draw")),
            1 => {
                let ledger = Arc::clone(ledger);
                service.draw_with(move |outcome| note(&ledger, outcome.expect("a draw")));
            }
            2 => under_way.push(service.draw_async()),
            3 => note(ledger, block_on(service.draw_async()).expect("a draw")),
            _ => match service.call(Request::DrawMany { count: 3, repeats: Repeats::Allowed }) {
                Ok(Answer::Draws(draws)) => draws.into_iter().for_each(|draw| note(ledger, draw)),
                other => panic!("no draws but {other:?}"),
            },
        }
    }
    for drawing in under_way {
        note(ledger, drawing.wait().expect("a draw"));
    }
}

#[test]
fn each_caller_gets_its_own_draws_and_the_log_agrees() {
    for queue in [1, 7, 16_384] {
        let (journal, ledger) = (MemoryJournal::default(), Ledger::default());
        let service = Service::start(pool(), journal.clone(), || 5, Settings { queue }).expect("a thread");
        std::thread::scope(|scope| {
            // A future that is not polled holds no place in the queue, so a short queue suffices.
            for thread in 0..THREADS {
                let (service, ledger) = (&service, &ledger);
                scope.spawn(move || one_thread(service, ledger, thread));
            }
        });
        let said = state(&service);
        service.stop().expect("the journal is well");
        let ledger = ledger.lock().expect("a ledger");
        assert_eq!(ledger.len() as u64, said.next_draw);
        assert!(ledger.keys().copied().eq(0..said.next_draw), "draws are numbered without gaps");
        let mut alone = pool().pool;
        assert!(ledger.values().all(|&item| alone.draw().expect("a draw").item == item));
        assert_eq!(again(&journal.frames()).chain, said.chain);
        for (item, state) in items().iter().zip(&said.items) {
            let drawn = ledger.values().filter(|&&drawn| drawn == Some(state.item)).count() as u64;
            assert_eq!(drawn, state.drawn, "{}", item.id);
            if let (Stock::Limited(before), Stock::Limited(left)) = (item.stock, state.stock) {
                assert_eq!(left, before - drawn, "{}: no prize twice, and none lost", item.id);
            }
        }
    }
}

#[test]
fn a_draw_while_the_service_stops_is_answered() {
    for _ in 0..20 {
        let (journal, ledger) = (MemoryJournal::default(), Ledger::default());
        let service = Service::start(pool(), journal.clone(), || 5, Settings { queue: 3 }).expect("a thread");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (service, ledger) = (&service, &ledger);
                scope.spawn(move || {
                    loop {
                        let outcome =
                            if thread % 2 == 0 { service.draw() } else { service.draw_async().wait() };
                        match outcome {
                            Ok(draw) => note(ledger, draw),
                            Err(error) => return assert_eq!(error, CallError::Stopped),
                        }
                    }
                });
            }
            std::thread::yield_now();
            service.stop().expect("the journal is well");
        });
        let ledger = ledger.lock().expect("a ledger");
        assert_eq!(ledger.len() as u64, again(&journal.frames()).pool.next_draw());
    }
}
