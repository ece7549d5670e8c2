//! A journal that fails: the service awards nothing that the journal does not have, every caller
//! gets an answer, and reads still work.

use super::support::{HeldJournal, again, pool, serve, state};
use tidemark_pool::journal::{Fault, FaultyJournal, MemoryJournal, Plan};
use tidemark_pool::service::{CallError, Request, Service, Settings};
use tidemark_pool::{Draw, Repeats};

/// Makes calls one after the other until one fails; returns the acknowledged draws. Each call is a
/// frame of its own.
fn draw_until_failure(service: &Service, calls: u64) -> (Vec<Draw>, Option<CallError>) {
    let mut drawn = Vec::new();
    for _ in 0..calls {
        match service.draw() {
            Ok(draw) => drawn.push(draw),
            Err(error) => return (drawn, Some(error)),
        }
    }
    (drawn, None)
}

#[test]
fn at_whatever_frame_the_journal_fails_nothing_is_lost_that_was_awarded_and_nothing_else_is() {
    const CALLS: u64 = 12;
    for fault in [Fault::Append, Fault::Torn(0), Fault::Torn(20), Fault::Torn(usize::MAX), Fault::Sync] {
        for at in 1..=CALLS + 1 {
            let memory = MemoryJournal::default();
            let service = serve(FaultyJournal::new(memory.clone(), Plan { fault, at }));
            let (drawn, error) = draw_until_failure(&service, CALLS);
            assert_eq!(drawn.len() as u64, (at - 1).min(CALLS), "{fault:?} at {at}");
            assert_eq!(error.is_some(), at <= CALLS);
            let said = state(&service);
            assert_eq!(said.next_draw, drawn.len() as u64, "reads go on, and say what was awarded");
            if let Some(error) = error {
                assert!(matches!(error, CallError::Failed(_)), "{error}");
                assert_eq!(service.draw(), Err(error.clone()), "a failure is final");
                let many = Request::DrawMany { count: 2, repeats: Repeats::Allowed };
                assert_eq!(service.call(many), Err(error));
                assert!(service.stop().is_err());
            }
            // The whole frames contain every award.
            let frames = memory.frames();
            let whole = frames.len().min(at as usize - 1);
            let again = again(&frames[..whole]);
            assert_eq!((again.pool.next_draw(), again.chain), (said.next_draw, said.chain));
            assert!(frames.len() <= whole + 1, "nothing is written behind a failure");
        }
    }
}

#[test]
fn a_sync_that_fails_takes_back_every_frame_that_has_not_settled() {
    let journal = HeldJournal::default();
    let service = serve(journal.clone());
    let first = service.draw_async();
    journal.await_frames(1);
    journal.settle(1);
    assert!(first.wait().is_ok());
    let before = state(&service);

    let reserve = Request::Reserve { count: 2, repeats: Repeats::Allowed, until_us: u64::MAX };
    let second = service.call_async(reserve);
    journal.await_frames(2);
    let third = service.draw_async();
    journal.await_frames(3);
    journal.fail();
    assert!(matches!(second.wait(), Err(CallError::Failed(_))));
    assert!(matches!(third.wait(), Err(CallError::Failed(_))));
    let more = [service.draw_async(), service.draw_async()];
    assert_eq!([state(&service), state(&service)], [before.clone(), before], "reads go on");
    assert!(more.into_iter().all(|drawing| matches!(drawing.wait(), Err(CallError::Failed(_)))));
    assert!(service.stop().is_err());
    assert!(service.draw().is_err());
}

#[test]
fn a_journal_that_is_full_says_how_to_go_on() {
    let service = Service::start(pool(), MemoryJournal::with_limit(100), || 0, Settings::default());
    let service = service.expect("a thread");
    let (drawn, error) = draw_until_failure(&service, 10);
    let error = error.expect("there is no room for ten frames").to_string();
    assert!(!drawn.is_empty() && error.contains("100 bytes") && error.contains("opened again"), "{error}");
}
