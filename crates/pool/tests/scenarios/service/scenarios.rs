//! Calls of one caller after the other.

use super::support::{HeldJournal, again, first_draws, pool, pool_of, serve, state};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use tidemark_pool::journal::{Journal, JournalError, Listener, MemoryJournal, NoJournal, Position};
use tidemark_pool::selector::WideTree;
use tidemark_pool::service::{Answer, Asker, CHANGES_MAX, CallError, Change, Request, Service, Settings};
use tidemark_pool::{
    Catalogue, ChainedPool, Ending, Guarantee, Item, Limit, NotFollowed, Pool, Refusal, Release, Repeats,
    Rules, Schedule, Scope, Secret, Soft, Stock, Unsold,
};

#[test]
fn all_three_ways_draw_what_the_pool_alone_would_draw() {
    let service = serve(MemoryJournal::default());
    let (sender, receiver) = mpsc::channel();
    let mut alone = pool().pool;
    for turn in 0..100 {
        let drawn = match turn % 3 {
            0 => service.draw(),
            1 => service.draw_async().wait(),
            _ => {
                let sender = sender.clone();
                service.draw_with(move |outcome| sender.send(outcome).expect("the test waits"));
                receiver.recv().expect("the callback is called")
            }
        };
        assert_eq!(drawn.expect("a draw"), alone.draw().expect("a draw"));
    }
}

#[test]
fn no_caller_is_answered_before_its_frame_is_durable_and_the_next_frame_is_written_meanwhile() {
    let journal = HeldJournal::default();
    let service = serve(journal.clone());
    let mut first = pin!(service.draw_async());
    assert_eq!(journal.await_frames(1).len(), 1);
    let mut second = pin!(service.draw_async());
    let frames = journal.await_frames(2);
    assert_eq!(first_draws(&frames), [0, 1]);

    let mut context = Context::from_waker(Waker::noop());
    assert!(
        first.as_mut().poll(&mut context).is_pending() && second.as_mut().poll(&mut context).is_pending()
    );
    journal.settle(1);
    assert_eq!(block_on(first).expect("a draw").number, 0);
    assert!(second.as_mut().poll(&mut context).is_pending(), "its frame has not settled");
    journal.settle(2);
    assert_eq!(block_on(second).expect("a draw").number, 1);
}

#[test]
fn what_is_known_of_the_pool_is_in_the_log() {
    let journal = HeldJournal::default();
    let service = serve(journal.clone());
    service.draw_with(|_| ());
    journal.await_frames(1);
    let mut state = pin!(service.call_async(Request::State { from: 0, count: 9 }));
    service.draw_with(|_| ());
    journal.await_frames(2);
    assert!(state.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    journal.settle(1);
    let Ok(Answer::State(state)) = block_on(state) else { panic!("no state") };
    let frames = journal.await_frames(2);
    let first = again(&frames[..1]);
    assert_eq!((state.next_draw, state.chain), (1, first.chain), "the second draw came behind the question");
    journal.settle(2);
}

#[test]
fn each_request_does_what_the_pool_does() {
    let journal = MemoryJournal::default();
    let service = serve(journal.clone());
    let Ok(Answer::Draws(draws)) = service.call(Request::DrawMany { count: 3, repeats: Repeats::Excluded })
    else {
        panic!("no draws");
    };
    assert_eq!(draws.len(), 3);
    let refused = service.call(Request::DrawMany { count: 4, repeats: Repeats::Excluded });
    assert_eq!(refused, Err(CallError::Refused(Refusal::NotSoManyItems { wanted: 4, left: 3 })));
    assert_eq!(state(&service).next_draw, 3, "what is refused has changed nothing");

    let reserve = Request::Reserve { count: 2, repeats: Repeats::Allowed, until_us: 2_000 };
    let Ok(Answer::Reserved(reservation)) = service.call(reserve.clone()) else { panic!("no reservation") };
    assert_eq!(service.call(Request::Confirm { number: reservation.number() }), Ok(Answer::Done));
    let Ok(Answer::Reserved(reservation)) = service.call(reserve) else { panic!("no reservation") };
    assert_eq!(state(&service).reservations, 1);
    assert_eq!(service.call(Request::Cancel { number: reservation.number() }), Ok(Answer::Done));

    service.call(Request::GiveBack { id: "nothing".into(), count: 1 }).expect("it was drawn");
    let Ok(Answer::Revealed(over)) =
        service.call(Request::BeginEpoch { client_seed: (*b"ours").into(), after: Secret::new([3; 32]) })
    else {
        panic!("no epoch");
    };
    assert_eq!((over.epoch.index, over.end), (0, 7));
    assert!(matches!(service.call(Request::Draw), Ok(Answer::Draw(draw)) if draw.number == 7));

    let said = state(&service);
    service.stop().expect("the journal is well");
    let again = again(&journal.frames());
    assert_eq!((again.pool.next_draw(), again.chain), (said.next_draw, said.chain));
    assert_eq!(again.pool.commitment(), said.commitment);
}

#[test]
fn a_request_that_is_sent_again_is_answered_again_and_users_have_their_limits() {
    let car = || vec!["car".into()];
    let limits = vec![
        Limit { max: 3, per_ms: Some(1_000), wins_of: None },
        Limit { max: 1, per_ms: None, wins_of: Some(car()) },
    ];
    let items = vec![Item::unlimited("car", 1), Item::unlimited("mug", 1)];
    let rules = Rules::new(limits, Vec::new()).expect("they are sound");
    let catalogue = Catalogue::new(items).expect("a catalogue").ruled(rules).expect("they name items");
    let new =
        || ChainedPool::new(Pool::<WideTree>::new(&catalogue, Secret::new([1; 32]), Secret::new([2; 32])));
    let (journal, clock) = (MemoryJournal::default(), Arc::new(AtomicU64::new(5_000)));
    let now = Arc::clone(&clock);
    let service =
        Service::start(new(), journal.clone(), move || now.load(Ordering::SeqCst), Settings::default())
            .expect("a thread");
    assert_eq!(service.draw(), Err(CallError::Refused(Refusal::NoUser)), "whose draw it is must be said");

    let asker = Asker { user: Some((*b"mira").into()), ..Asker::request(b"order 17") };
    let draw = || Request::DrawBy { asker: asker.clone(), count: 2, repeats: Repeats::Allowed };
    // Both calls are made before either is answered.
    let (first, again) = (service.call_async(draw()), service.call_async(draw()));
    let first = first.wait().expect("two draws");
    assert_eq!(again.wait(), Ok(first));
    let mira = || Asker::user(b"mira");
    let more = || Request::DrawBy { asker: mira(), count: 2, repeats: Repeats::Allowed };
    let limited = |again_ms| Err(CallError::Refused(Refusal::Limited { max: 3, again_ms: Some(again_ms) }));
    assert_eq!(service.call(more()), limited(1_000));
    clock.store(1_000_000, Ordering::SeqCst);
    assert!(service.call(more()).is_ok(), "another window");

    let reserve =
        Request::ReserveBy { asker: mira(), count: 1, repeats: Repeats::Allowed, until_us: 1_500_000 };
    let Ok(Answer::Reserved(held)) = service.call(reserve.clone()) else { panic!("no reservation") };
    assert_eq!(held.user.as_deref(), Some(&b"mira"[..]));
    assert_eq!(service.call(reserve), limited(2_000));
    let returned = |id: &str| Request::GiveBackBy { user: (*b"mira").into(), id: id.into(), count: 1 };
    service.call(returned("mug")).expect("mugs were drawn");
    assert!(matches!(service.call(returned("hat")), Err(CallError::Refused(Refusal::UnknownItem { .. }))));
    let said = state(&service);
    assert_eq!(said.next_draw, 5, "the second time nothing was drawn");
    service.stop().expect("the journal is well");
    let mut again = new();
    journal.frames().iter().for_each(|frame| again.follow(frame).expect("a frame that follows"));
    assert_eq!((again.pool.next_draw(), again.chain), (said.next_draw, said.chain));
    assert_eq!(again.pool.users(), 1);
}

#[test]
fn the_schedule_follows_the_clock_without_requests() {
    let release =
        Release { item: "mug".into(), units: 2, from_ms: 10, every_ms: 10, times: 2, unsold: Unsold::Stays };
    let catalogue = Catalogue::new(vec![Item::limited("mug", 1, 0)]).expect("a catalogue");
    let catalogue = catalogue.scheduled(Schedule::new(vec![release]).expect("it is sound")).expect("it fits");
    let new =
        || ChainedPool::new(Pool::<WideTree>::new(&catalogue, Secret::new([1; 32]), Secret::new([2; 32])));
    let (journal, clock) = (MemoryJournal::default(), Arc::new(AtomicU64::new(9_999)));
    let now = Arc::clone(&clock);
    let service =
        Service::start(new(), journal.clone(), move || now.load(Ordering::SeqCst), Settings::default())
            .expect("a thread");
    assert_eq!(service.draw(), Err(CallError::Refused(Refusal::EmptyUntil { at_ms: 10 })));
    clock.store(10_000, Ordering::SeqCst);
    assert_eq!(service.draw().map(|draw| draw.item), Ok(Some(0)));
    assert_eq!(service.draw(), Err(CallError::Refused(Refusal::EmptyUntil { at_ms: 20 })));
    clock.store(20_000, Ordering::SeqCst);
    while journal.frames().len() < 2 {
        // The service checks the clock even without calls.
        std::thread::yield_now();
    }
    let said = state(&service);
    assert_eq!(
        (said.items[0].stock, said.items[0].to_come, said.next_release_ms),
        (Stock::Limited(1), 0, None)
    );
    service.stop().expect("the journal is well");
    let mut again = new();
    journal.frames().iter().for_each(|frame| again.follow(frame).expect("a frame that follows"));
    assert_eq!((again.pool.next_draw(), again.chain), (said.next_draw, said.chain));
}

#[test]
fn changes_are_made_all_or_not_at_all() {
    let journal = MemoryJournal::default();
    let service = serve(journal.clone());
    let before = state(&service);
    let changes = vec![
        Change::Weight { id: "car".into(), weight: 9 },
        Change::Add(Item::limited("bicycle", 5, 10)),
        Change::Stock { id: "mug".into(), stock: Stock::Unlimited },
    ];
    let mut too_much = changes.clone();
    too_much.push(Change::Remove { id: "boat".into() });
    let refused = service.call(Request::Change(too_much));
    assert_eq!(refused, Err(CallError::Refused(Refusal::UnknownItem { id: "boat".into() })));
    assert_eq!(state(&service), before);
    let many = vec![Change::Restock { id: "mug".into(), units: 1 }; CHANGES_MAX + 1];
    assert!(matches!(service.call(Request::Change(many)), Err(CallError::TooManyChanges { .. })));
    assert!(journal.frames().is_empty(), "what changes nothing is not logged");

    assert_eq!(service.call(Request::Change(changes)), Ok(Answer::Done));
    let after = state(&service);
    assert_eq!((after.items_count, after.items[0].weight, after.items[1].stock), (4, 9, Stock::Unlimited));
    assert_eq!(after.chain, again(&journal.frames()).chain);
}

#[test]
fn items_are_listed_page_by_page() {
    let items: Vec<_> = (0..300).map(|item| Item::limited(item.to_string(), 1, 1)).collect();
    let service =
        Service::start(pool_of(items), NoJournal::default(), || 0, Settings::default()).expect("a thread");
    let (mut from, mut received) = (Some(0), Vec::new());
    while let Some(first) = from {
        let Ok(Answer::State(state)) = service.call(Request::State { from: first, count: 128 }) else {
            panic!("no state");
        };
        received.extend(state.items.into_iter().map(|item| item.item));
        from = state.next;
    }
    assert_eq!(received, (0..300).collect::<Vec<_>>());
    let Ok(Answer::State(state)) = service.call(Request::State { from: u32::MAX, count: 1 }) else {
        panic!("no state");
    };
    assert!(state.items.is_empty() && state.next.is_none());
}

#[test]
fn reservations_end_by_themselves_when_their_time_is_over() {
    let (time, journal) = (Arc::new(AtomicU64::new(0)), MemoryJournal::default());
    let clock = Arc::clone(&time);
    let clock = move || clock.load(Ordering::Relaxed);
    let service = Service::start(pool(), journal.clone(), clock, Settings::default()).expect("a thread");
    let reserve = Request::Reserve { count: 3, repeats: Repeats::Allowed, until_us: 500 };
    service.call(reserve).expect("a reservation");
    assert_eq!(state(&service).reservations, 1);
    time.store(500, Ordering::Relaxed);
    // The service expires reservations without a call; each answer is the state at its time.
    while state(&service).reservations > 0 {
        std::thread::yield_now();
    }
    service.stop().expect("the journal is well");
    assert_eq!(again(&journal.frames()).pool.reservations().len(), 0, "the end is in the log");
}

#[test]
fn a_service_ends_in_order_while_a_frame_without_answers_has_not_settled() {
    let (time, journal) = (Arc::new(AtomicU64::new(0)), HeldJournal::default());
    let clock = Arc::clone(&time);
    let clock = move || clock.load(Ordering::Relaxed);
    let service = Service::start(pool(), journal.clone(), clock, Settings::default()).expect("a thread");
    let reserve = Request::Reserve { count: 3, repeats: Repeats::Allowed, until_us: 500 };
    let reserved = service.call_async(reserve);
    journal.await_frames(1);
    journal.settle(1);
    reserved.wait().expect("a reservation");
    time.store(500, Ordering::Relaxed);
    journal.await_frames(2);
    assert_eq!(service.stop(), Ok(()), "no call waits for the end of the reservation");
}

#[test]
fn a_journal_that_takes_two_frames_at_one_place_stops_the_service() {
    let service = serve(OnePlace);
    assert_eq!(service.draw().map(|draw| draw.number), Ok(0));
    assert_eq!(service.draw(), Err(CallError::Panicked));
    assert_eq!(service.draw(), Err(CallError::Panicked));
    assert!(service.stop().is_err());
}

/// A journal whose positions do not increase, although a journal must ensure that they do.
struct OnePlace;

impl Journal for OnePlace {
    fn append(&mut self, _time_us: u64, _frame: &[u8]) -> Result<Position, JournalError> {
        Ok(1)
    }

    fn request(&mut self, _position: Position) {}

    fn settled(&self) -> Result<Position, JournalError> {
        Ok(1)
    }

    fn listen(&mut self, _listener: Listener) {}

    fn close(&mut self) -> Result<(), JournalError> {
        Ok(())
    }
}

#[test]
fn a_future_that_is_dropped_has_drawn_all_the_same() {
    let journal = MemoryJournal::default();
    let service = serve(journal.clone());
    drop(service.draw_async());
    let mut polled = Box::pin(service.draw_async());
    let _ = polled.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    drop(polled);
    assert_eq!(service.draw().expect("a draw").number, 2);
    assert_eq!(again(&journal.frames()).pool.next_draw(), 3);
}

#[test]
fn requests_before_the_stop_are_answered_and_later_ones_are_refused() {
    let journal = HeldJournal::default();
    let service = serve(journal.clone());
    let drawings: Vec<_> = (0..5).map(|_| service.draw_async()).collect();
    std::thread::scope(|scope| {
        let stopped = scope.spawn(|| service.stop());
        let mut context = Context::from_waker(Waker::noop());
        while pin!(service.draw_async()).poll(&mut context) != Poll::Ready(Err(CallError::Stopped)) {
            std::thread::yield_now();
        }
        journal.settle(u64::MAX);
        assert_eq!(stopped.join().expect("no panic"), Ok(()));
    });
    let numbers: Vec<_> =
        drawings.into_iter().map(|drawing| drawing.wait().expect("a draw").number).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
    assert_eq!(service.draw(), Err(CallError::Stopped));
    assert_eq!(service.draw_async().wait(), Err(CallError::Stopped));
    let (sender, receiver) = mpsc::channel();
    service.draw_with(move |outcome| sender.send(outcome).expect("the test waits"));
    assert_eq!(receiver.recv().expect("it is called"), Err(CallError::Stopped));
    assert_eq!(service.stop(), Ok(()), "a second stop gets the same answer");
}

#[test]
fn a_callback_may_ask_for_more_but_not_wait() {
    let service = Arc::new(serve(MemoryJournal::default()));
    let (sender, receiver) = mpsc::channel();
    let inner = Arc::clone(&service);
    service.draw_with(move |_| {
        let outcomes = (inner.draw(), inner.draw_async().wait());
        inner.draw_with(move |outcome| sender.send((outcomes, outcome)).expect("the test waits"));
    });
    let ((blocking, waiting), called) = receiver.recv().expect("it is called");
    assert_eq!((blocking, waiting), (Err(CallError::InCallback), Err(CallError::InCallback)));
    assert!(called.is_ok());
}

#[test]
fn a_callback_that_panics_stops_no_other_answer() {
    let service = serve(MemoryJournal::default());
    service.draw_with(|_| panic!("this panic belongs to a test"));
    assert_eq!(service.draw().expect("a draw").number, 1);
}

#[test]
fn the_last_owner_may_let_go_in_a_callback() {
    let service = Arc::new(serve(MemoryJournal::default()));
    let (sender, receiver) = mpsc::channel();
    let last = Arc::clone(&service);
    service.draw_with(move |outcome| {
        drop(last);
        sender.send(outcome).expect("the test waits");
    });
    drop(service);
    assert!(receiver.recv().expect("it is called").is_ok());
}

#[test]
fn a_full_queue_lets_callers_wait_and_refuses_callbacks() {
    let journal = HeldJournal::default();
    let service = Service::start(pool(), journal.clone(), || 0, Settings { queue: 2 }).expect("a thread");
    let service = Arc::new(service);
    let (sender, receiver) = mpsc::channel();
    let (inner, received) = (Arc::clone(&service), sender.clone());
    service.draw_with(move |_| {
        let received = received.clone();
        // Two calls are unanswered: this one and the next one.
        inner.draw_with(move |outcome| received.send(outcome).expect("the test waits"));
    });
    service.draw_with(|_| ());
    let woken = Arc::new(Counter::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut third = Box::pin(service.draw_async());
    assert!(third.as_mut().poll(&mut Context::from_waker(&waker)).is_pending(), "there is no room");
    std::thread::scope(|scope| {
        let fourth = scope.spawn(|| service.draw());
        journal.await_frames(1);
        journal.settle(u64::MAX);
        assert_eq!(receiver.recv().expect("it is called"), Err(CallError::Full));
        assert!(block_on(third).is_ok() && fourth.join().expect("no panic").is_ok());
    });
    assert!(woken.0.load(Ordering::Relaxed) > 0, "the caller waiting for room is woken");
    assert_eq!(state(&service).next_draw, 4);
}

#[test]
fn an_empty_pool_says_so_and_logs_nothing() {
    let journal = MemoryJournal::default();
    let pool = pool_of(vec![Item::limited("car", 1, 1)]);
    let service = Service::start(pool, journal.clone(), || 0, Settings::default()).expect("a thread");
    assert!(service.draw().is_ok());
    let bytes = journal.bytes();
    assert_eq!(service.draw(), Err(CallError::Refused(Refusal::Empty)));
    assert_eq!(journal.bytes(), bytes);
}

/// Counts its wake-ups.
#[derive(Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs a future on the current thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn whose_time_is_over_gets_nothing_however_many_there_are() {
    let (time, journal) = (Arc::new(AtomicU64::new(0)), MemoryJournal::default());
    let clock = Arc::clone(&time);
    let clock = move || clock.load(Ordering::Relaxed);
    let items = vec![Item::limited("seat", 1, 3_000)];
    let service = Service::start(pool_of(items.clone()), journal.clone(), clock, Settings::default())
        .expect("a thread");
    let reserve = Request::Reserve { count: 1, repeats: Repeats::Allowed, until_us: 10_000_000 };
    let asked: Vec<_> = (0..3_000).map(|_| service.call_async(reserve.clone())).collect();
    asked.into_iter().for_each(|asked| drop(asked.wait().expect("there are so many")));
    time.store(20_000_000, Ordering::Relaxed);
    let late = service.call(Request::Confirm { number: 2_999 });
    assert_eq!(late, Err(CallError::Refused(Refusal::Ended { number: 2_999, how: Ending::Expired })));
    let all = Request::DrawMany { count: 3_000, repeats: Repeats::Allowed };
    assert!(service.call(all).is_ok(), "all have come back");

    // A reservation whose deadline is in the past expires before the next call is executed.
    service.call(Request::Change(vec![Change::Restock { id: "seat".into(), units: 1 }])).expect("one more");
    let past = Request::Reserve { count: 1, repeats: Repeats::Allowed, until_us: 0 };
    let (reserved, drawn) = (service.call_async(past), service.draw_async());
    assert!(reserved.wait().is_ok() && drawn.wait().is_ok());
    service.stop().expect("the journal is well");
    let mut auditor = pool_of(items);
    for frame in journal.frames() {
        auditor.check(&frame, &mut |_| Ok::<(), NotFollowed>(())).expect("it was so");
    }
}

#[test]
fn a_draw_of_one_gets_the_reason_for_a_refusal() {
    let soft = Some(Soft { from: 1, step: 1_000_000_000 });
    let guarantee = Guarantee { after: 9, of: vec!["car".into()], scope: Scope::Pool, soft };
    let rules = Rules::new(Vec::new(), vec![guarantee]).expect("they are sound");
    let items = vec![Item::unlimited("car", 10_000_000_000), Item::unlimited("mug", 1)];
    let catalogue = Catalogue::new(items).expect("a catalogue").ruled(rules).expect("they name items");
    let pool = Pool::<WideTree>::new(&catalogue, Secret::new([1; 32]), Secret::new([2; 32]));
    let service = Service::start(ChainedPool::new(pool), NoJournal::default(), || 0, Settings::default())
        .expect("a thread");
    assert_eq!(service.draw(), Err(CallError::Refused(Refusal::TooHeavy)));
}

#[test]
fn the_end_of_an_epoch_settles_only_when_it_is_durable() {
    let journal = MemoryJournal::default();
    let asked = Arc::new(AtomicU64::new(0));
    let service = serve(Witness { journal, asked: Arc::clone(&asked) });
    service.draw().expect("there are some");
    assert_eq!(asked.load(Ordering::SeqCst), 0, "draws are as safe as the journal's others");
    let begin = Request::BeginEpoch { client_seed: Box::default(), after: Secret::new([3; 32]) };
    service.call(begin).expect("an epoch");
    assert_eq!(asked.load(Ordering::SeqCst), 2, "the second frame");
    service.draw().expect("there are some");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

/// A journal that notes the number of the frame that must be durable.
struct Witness {
    journal: MemoryJournal,
    asked: Arc<AtomicU64>,
}

impl Journal for Witness {
    fn append(&mut self, time_us: u64, frame: &[u8]) -> Result<Position, JournalError> {
        self.journal.append(time_us, frame)
    }

    fn settle_when_durable(&mut self, position: Position) {
        assert_eq!(self.settled(), Ok(position), "the frame that was just taken");
        self.asked.store(self.journal.frames().len() as u64, Ordering::SeqCst);
    }

    fn request(&mut self, position: Position) {
        self.journal.request(position);
    }

    fn settled(&self) -> Result<Position, JournalError> {
        self.journal.settled()
    }

    fn listen(&mut self, listener: Listener) {
        self.journal.listen(listener);
    }

    fn close(&mut self) -> Result<(), JournalError> {
        self.journal.close()
    }
}
