//! A judge is useful only if it finds faults. Each test takes the notes of a flawless subscriber,
//! plants one flaw, and expects a fault.

use super::judge::{Allowance, Evidence, Promise};
use super::model::{BEFORE_ALL, empty_engine};
use super::read::{Form, Read};
use super::received::{Begin, End, Floor, Name, Received, Refusal, Stretch, Subscription};
use tidemark_engine::watch::Filter;
use tidemark_engine::{Call, Engine, Protocol, Reply, command, watch};
use tidemark_log::{Lsn, Record};

/// A log with a watched read at record 2, and its evidence. The read changes at the records 3, 5,
/// 6, 7, 9 and 10.
pub(crate) struct Scene {
    engine: Engine,
}

/// Name of the query, with numbers from the beginning.
const NAME: Name = Name { query: 2, base: 0 };
pub(crate) const HEAD: u64 = 10;

pub(crate) fn read() -> Read {
    Read {
        db: 0,
        protocol: Protocol::Resp3,
        words: vec![b"GET".to_vec(), b"k".to_vec()],
        operators: String::new(),
        form: Form::Wire,
    }
}

impl Scene {
    pub(crate) fn new() -> Self {
        let scene = Self { engine: empty_engine() };
        scene.run("SET k 0");
        let words: [&[u8]; 2] = [b"GET", b"k"];
        let watched = watch::Read::new(0, Protocol::Resp3, &words, Filter::default()).expect("a read");
        let subscribed = scene.engine.subscribe(watched, 0, BEFORE_ALL).expect("a beginning");
        assert_eq!(subscribed.lsn, Lsn(NAME.query));
        for line in ["SET k 1", "SET other token-1.", "SET k 2", "DEL k", "RPUSH k a", "SET other 2"] {
            scene.run(line);
        }
        for line in ["SET k 4", "SET k 5"] {
            scene.run(line);
        }
        assert_eq!(scene.engine.log().appended(), Lsn(HEAD));
        scene
    }

    fn run(&self, line: &str) {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let command = command::resolve(&args).expect("a command");
        let call = Call { command, args: &args, db: 0, now_us: BEFORE_ALL };
        self.engine.execute(&call, &mut Reply::default());
    }

    /// Returns the evidence of the log up to a record; later records are lost.
    fn evidence(&self, last: u64, subscriptions: &[Subscription]) -> Result<Evidence, String> {
        Evidence::of(subscriptions, (&[], &[]), |see| self.show(last, see))
    }

    /// Shows the records up to `last`.
    pub(crate) fn show(&self, last: u64, see: &mut dyn FnMut(&Record<'_>)) {
        let log = self.engine.log();
        log.wait_durable(log.appended()).expect("memory does not fail");
        let mut replay = log.replay(Lsn(1)).expect("the log can be read");
        while let Some(batch) = replay.next_batch().expect("the log is sound") {
            batch.iter().filter(|record| record.lsn.0 <= last).for_each(|record| see(&record));
        }
    }

    fn verdict(&self, subscription: &Subscription) -> Result<(), String> {
        self.verdict_with(HEAD, subscription, &Allowance::default())
    }

    fn verdict_with(
        &self,
        last: u64,
        subscription: &Subscription,
        allowance: &Allowance,
    ) -> Result<(), String> {
        let evidence = self.evidence(last, std::slice::from_ref(subscription))?;
        evidence.judge(subscription, allowance)
    }
}

/// Returns the emissions after the first `seen`.
pub(crate) fn received_after(seen: usize) -> Vec<Received> {
    let values: [(u64, &str); 6] = [
        (3, "$1\r\n1\r\n"),
        (5, "$1\r\n2\r\n"),
        (6, "_\r\n"),
        (7, "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"),
        (9, "$1\r\n4\r\n"),
        (10, "$1\r\n5\r\n"),
    ];
    let before = std::iter::once("$1\r\n0\r\n").chain(values.iter().map(|(_, value)| *value));
    let emission = |(seq, ((lsn, value), old)): (u64, (&(u64, &str), &str))| Received::Emission {
        lsn: *lsn,
        seq,
        value: value.as_bytes().to_vec(),
        old: Some(old.as_bytes().to_vec()),
    };
    (1..).zip(values.iter().zip(before)).map(emission).skip(seen).collect()
}

/// Returns the notes of a subscriber whose connection broke after its third emission, that resumed
/// after the second, and has everything.
pub(crate) fn flawless() -> Subscription {
    let answer = Begin::Answer { lsn: 2, seq: Some(0), value: Some(b"$1\r\n0\r\n".to_vec()) };
    let mut first = received_after(0);
    first.truncate(3);
    first.insert(1, Received::Progress { lsn: 4 });
    let mut second = received_after(2);
    second.push(Received::CaughtUp { lsn: 10 });
    let stretch = |begin, received, end| Stretch { received, end, ..Stretch::new(NAME, begin) };
    let stretches = vec![
        stretch(answer, first, End::Broken),
        stretch(Begin::Resumed { behind: 5, seq: Some(2) }, second, End::Complete { head: HEAD }),
    ];
    Subscription { read: read(), stretches, refusal: None }
}

/// Expects that the judge finds the flaw, with an error that begins with `said`.
fn finds(said: &str, plant: impl FnOnce(&mut Subscription)) {
    let (scene, mut subscription) = (Scene::new(), flawless());
    plant(&mut subscription);
    let fault = scene.verdict(&subscription).expect_err("the flaw is found");
    assert!(fault.contains(said), "{fault}");
}

fn first_received(subscription: &mut Subscription) -> &mut Vec<Received> {
    &mut subscription.stretches[0].received
}

fn second_received(subscription: &mut Subscription) -> &mut Vec<Received> {
    &mut subscription.stretches[1].received
}

#[test]
fn what_is_as_it_must_be_has_no_fault() {
    assert_eq!(Scene::new().verdict(&flawless()), Ok(()));
}

#[test]
fn a_lost_emission_is_found() {
    for at in 0..4 {
        finds("", |subscription| drop(second_received(subscription).remove(at)));
    }
    finds("LSN 6 was delivered where 5 comes next", |subscription| {
        drop(first_received(subscription).remove(2));
    });
}

#[test]
fn the_last_emission_lost_before_a_cut_is_found_unless_it_comes_again() {
    let mut subscription = flawless();
    first_received(&mut subscription).pop();
    assert_eq!(Scene::new().verdict(&subscription), Ok(()), "it came behind the cut");
    finds("LSN 7 was delivered where 6 comes next", |subscription| {
        first_received(subscription).pop();
        second_received(subscription).remove(0);
    });
}

#[test]
fn an_emission_that_comes_again_with_another_value_is_found() {
    finds("the emission of LSN 6", |subscription| {
        if let Received::Emission { value, .. } = &mut second_received(subscription)[0] {
            *value = b"$1\r\n9\r\n".to_vec();
        }
    });
    finds("LSN 5 was delivered where 6 comes next", |subscription| {
        let again = first_received(subscription)[2].clone();
        second_received(subscription).insert(0, again);
    });
}

#[test]
fn emissions_that_change_places_are_found() {
    finds("LSN 5 was delivered where 3 comes next", |subscription| first_received(subscription).swap(0, 2));
    finds("LSN 10 was delivered where 9 comes next", |subscription| second_received(subscription).swap(2, 3));
}

#[test]
fn an_emission_of_nothing_is_found() {
    finds("nothing has changed there", |subscription| {
        let value = b"$1\r\n5\r\n".to_vec();
        second_received(subscription).push(Received::Emission { lsn: 11, seq: 7, value, old: None });
    });
}

#[test]
fn wrong_numbers_are_found() {
    finds("has number 3 and is number 2", |subscription| {
        if let Received::Emission { seq, .. } = &mut first_received(subscription)[2] {
            *seq += 1;
        }
    });
    finds("its last number is said to be Some(1)", |subscription| {
        subscription.stretches[1].begin = Begin::Resumed { behind: 5, seq: Some(1) };
    });
    finds("its last number", |subscription| subscription.stretches[0].name.base = 9);
}

#[test]
fn a_wrong_answer_and_a_wrong_old_value_are_found() {
    finds("the answer at 2", |subscription| {
        let value = Some(b"$1\r\n1\r\n".to_vec());
        subscription.stretches[0].begin = Begin::Answer { lsn: 2, seq: Some(0), value };
    });
    finds("what LSN 9 has replaced", |subscription| {
        if let Received::Emission { old, .. } = &mut second_received(subscription)[2] {
            *old = Some(b"_\r\n".to_vec());
        }
    });
}

#[test]
fn a_false_word_about_what_there_was_not_is_found() {
    finds("up to 5 there is nothing, it was said, but 5", |subscription| {
        first_received(subscription)[1] = Received::Progress { lsn: 5 };
    });
    finds("caught up at 9, and what was sent ends at 10", |subscription| {
        second_received(subscription)[4] = Received::CaughtUp { lsn: 9 };
    });
    finds("up to 10 there is nothing", |subscription| drop(second_received(subscription).drain(3..)));
}

#[test]
fn an_emission_that_a_kill_has_taken_back_is_found() {
    let (scene, mut subscription) = (Scene::new(), flawless());
    subscription.stretches[1].received.pop();
    subscription.stretches[1].end = End::Broken;
    let nothing = Allowance::default();
    let fault = scene.verdict_with(9, &subscription, &nothing).expect_err("LSN 10 was delivered");
    assert!(fault.contains("LSN 10 was delivered, and nothing has changed there"), "{fault}");
    subscription.stretches[1].received.pop();
    assert_eq!(scene.verdict_with(9, &subscription, &nothing), Ok(()));
    subscription.stretches[1].received.push(Received::Progress { lsn: 10 });
    scene.verdict_with(9, &subscription, &nothing).expect_err("a position was delivered");
    let fault = scene.verdict_with(1, &subscription, &nothing).expect_err("the beginning was delivered");
    assert!(fault.contains("no record 2 that begins it"), "{fault}");
}

/// Returns the allowance of a log whose records up to `floor` were removed.
pub(crate) fn gone_to(floor: u64) -> Allowance {
    Allowance { floor, ..Allowance::default() }
}

#[test]
fn a_refusal_without_need_is_found() {
    let scene = Scene::new();
    let verdict_at = |behind, word: &str, lsn, highest, allowance: &Allowance| {
        let refusal = Some(Refusal { behind, word: word.to_owned(), lsn, highest });
        scene.verdict_with(HEAD, &Subscription { refusal, ..flawless() }, allowance)
    };
    let verdict =
        |behind, word: &str, lsn, allowance: &Allowance| verdict_at(behind, word, lsn, u64::MAX, allowance);
    assert_eq!(verdict(5, "STALE_SEQUENCE", 7, &gone_to(7)), Ok(()), "the older of the snapshots is there");
    assert_eq!(verdict(5, "STALE_SEQUENCE", 6, &gone_to(7)), Ok(()), "there was an older one at that time");
    verdict(5, "STALE_SEQUENCE", 7, &gone_to(0)).expect_err("the log is whole");
    verdict(5, "STALE_SEQUENCE", 9, &gone_to(7))
        .expect_err("what is behind the older snapshot can be made again");
    verdict_at(5, "STALE_SEQUENCE", 7, 6, &gone_to(7)).expect_err("it was there at that time");
    verdict(7, "STALE_SEQUENCE", 7, &gone_to(7)).expect_err("nothing was asked for that is gone");
    assert_eq!(verdict(8, "STALE_SEQUENCE", 7, &gone_to(8)), Ok(()), "a crash may have lost it");
    verdict(8, "STALE_SEQUENCE", 7, &gone_to(7)).expect_err("the log has the position");
    verdict(9, "STALE_SEQUENCE", 7, &gone_to(9)).expect_err("the position is that of an emission");
    verdict(8, "STALE_SEQUENCE", 4, &gone_to(8)).expect_err("the floor is no place to go on behind");
    verdict(9, "STALE_SEQUENCE", 11, &gone_to(11)).expect_err("the floor is beyond the end");
    verdict(10, "INVALID_SEQUENCE", 9, &gone_to(7)).expect_err("the position is in the log");
    verdict(10, "SUBSCRIPTION_NOT_FOUND", 0, &gone_to(7)).expect_err("the log has not let it go");
}

#[test]
fn a_word_of_staleness_without_need_is_found() {
    let scene = Scene::new();
    let verdict = |at, received, highest, allowance: &Allowance| {
        let mut subscription = flawless();
        subscription.stretches[1].received.truncate(3);
        subscription.stretches[1].end = End::Stale { at, floor: Floor { received, highest } };
        scene.verdict_with(HEAD, &subscription, allowance)
    };
    assert_eq!(verdict(9, 10, 10, &gone_to(10)), Ok(()));
    verdict(9, 10, 10, &gone_to(0)).expect_err("the log is whole");
    verdict(9, 10, 9, &gone_to(10)).expect_err("it was there at that time");
    verdict(7, 10, 10, &gone_to(10)).expect_err("the last that was written is another");
    verdict(9, 9, 9, &gone_to(10)).expect_err("nothing is missing");
    verdict(9, 10, 9, &Allowance { forgets: true, ..gone_to(0) }).expect("memory need not have it");
    verdict(9, 11, 9, &Allowance { forgets: true, ..gone_to(0) }).expect_err("nothing has changed there");
}

/// Returns the notes of a subscriber that wants only the latest emissions, and got every other one.
fn squashed() -> Subscription {
    let mut subscription = flawless();
    let mut stretch =
        Stretch { is_squashed: true, received: received_after(0), ..subscription.stretches.remove(0) };
    let mut is_second = false;
    stretch.received.retain(|_| {
        is_second = !is_second;
        !is_second
    });
    stretch.end = End::Complete { head: HEAD };
    Subscription { stretches: vec![stretch], ..subscription }
}

#[test]
fn a_squashing_subscriber_may_skip_emissions_but_not_the_latest() {
    let scene = Scene::new();
    assert_eq!(scene.verdict(&squashed()), Ok(()));
    let verdict_of = |plant: &dyn Fn(&mut Stretch)| {
        let mut subscription = squashed();
        plant(&mut subscription.stretches[0]);
        scene.verdict(&subscription).expect_err("the flaw is found")
    };
    let fault = verdict_of(&|stretch| stretch.is_squashed = false);
    assert!(fault.contains("LSN 5 was delivered where 3 comes next"), "{fault}");
    let fault = verdict_of(&|stretch| drop(stretch.received.pop()));
    assert!(fault.contains("up to 10 there is nothing"), "{fault}");
    let fault = verdict_of(&|stretch| stretch.received.swap(0, 1));
    assert!(fault.contains("LSN 5 was delivered where 9 comes next"), "{fault}");
    let fault = verdict_of(&|stretch| stretch.received.insert(1, Received::Progress { lsn: 6 }));
    assert!(fault.contains("up to 6 there is nothing, it was said, but 6"), "{fault}");
    verdict_of(&|stretch| {
        if let Received::Emission { value, .. } = &mut stretch.received[1] {
            *value = b"$1\r\n2\r\n".to_vec();
        }
    });
}

#[test]
fn an_acknowledged_write_that_is_missing_is_found() {
    let (scene, subscription) = (Scene::new(), flawless());
    let promise = |token: &[u8]| Promise { token: token.to_vec(), reason: "as durable" };
    let evidence = scene.evidence(HEAD, std::slice::from_ref(&subscription)).expect("a log");
    assert_eq!(evidence.judge_promises(&[promise(b"token-1.")]), Ok(()));
    evidence.judge_promises(&[promise(b"token-1."), promise(b"token-2.")]).expect_err("it is missing");
    let evidence = scene.evidence(3, &[subscription]).expect("a log");
    evidence.judge_promises(&[promise(b"token-1.")]).expect_err("it was taken back");
}

#[test]
fn what_a_browser_receives_is_compared_as_json() {
    let mut subscription = flawless();
    subscription.read.form = Form::Json;
    for stretch in &mut subscription.stretches {
        if let Begin::Answer { value: Some(value), .. } = &mut stretch.begin {
            *value = super::json::of(value).to_string().into_bytes();
        }
        for received in &mut stretch.received {
            if let Received::Emission { value, old, .. } = received {
                (*value, *old) = (super::json::of(value).to_string().into_bytes(), None);
            }
        }
    }
    let scene = Scene::new();
    assert_eq!(scene.verdict(&subscription), Ok(()));
    if let Received::Emission { value, .. } = &mut subscription.stretches[1].received[0] {
        *value = b"\"2\"".to_vec();
    }
    let fault = scene.verdict(&subscription).expect_err("the flaw is found");
    assert!(fault.contains("the emission of LSN 6"), "{fault}");
}
