//! The judge of counting subscribers finds planted flaws, as in [`super::flaws`].

use super::dice::{Counted, Refused, Run};
use super::flaws::{HEAD, Scene, gone_to, read};
use super::judge::{Allowance, Evidence};
use super::read::{Form, Read};
use serde_json::{Value, json};

/// Returns what is noted of the read's six emissions, after the first `seen`.
fn received_after(seen: usize) -> Vec<Vec<u8>> {
    let wrong_type = json!({ "error": "WRONGTYPE Operation " });
    let received: [Value; 6] = [json!("1"), json!("2"), json!(""), wrong_type, json!("4"), json!("5")];
    received[seen..].iter().map(|value| value.to_string().into_bytes()).collect()
}

/// Returns the notes of a subscriber whose connection broke after its third emission, that resumed
/// after the second, and has everything.
fn flawless() -> Counted {
    let first = Run {
        answer: Some(b"\"0\"".to_vec()),
        behind: 0,
        received: received_after(0)[..3].to_vec(),
        complete: None,
    };
    let second = Run { answer: None, behind: 2, received: received_after(2), complete: Some(HEAD) };
    let read = Read { form: Form::Dice, ..read() };
    Counted { read, query: 2, bases: 0..=0, stretches: vec![first, second], refusal: None }
}

fn verdict(counted: &Counted, allowance: &Allowance) -> Result<(), String> {
    let all = std::slice::from_ref(counted);
    let evidence = Evidence::of(&[], (&[], all), |see| Scene::new().show(HEAD, see))?;
    counted.judge(&evidence, allowance)
}

#[track_caller]
fn finds(said: &str, plant: impl FnOnce(&mut Counted)) {
    let mut counted = flawless();
    plant(&mut counted);
    let fault = verdict(&counted, &gone_to(0)).expect_err("the flaw is found");
    assert!(fault.contains(said), "{fault}");
}

#[test]
fn what_is_as_it_must_be_has_no_fault() {
    assert_eq!(verdict(&flawless(), &gone_to(0)), Ok(()));
    let uncertain = Counted { bases: 0..=3, ..flawless() };
    assert_eq!(verdict(&uncertain, &gone_to(0)), Ok(()), "its numbers begin where they can");
}

#[test]
fn what_is_lost_or_comes_again_or_is_of_nothing_is_found() {
    finds("the emission of LSN 3", |counted| drop(counted.stretches[0].received.remove(0)));
    finds("the emission of LSN 7", |counted| {
        let again = counted.stretches[1].received[0].clone();
        counted.stretches[1].received.insert(1, again);
        counted.stretches[1].received.pop();
    });
    finds("up to 10 there is nothing", |counted| drop(counted.stretches[1].received.pop()));
    finds("more was delivered than there was", |counted| {
        counted.stretches[1].received.push(b"\"5\"".to_vec());
    });
    finds("the answer at 2", |counted| counted.stretches[0].answer = Some(b"\"1\"".to_vec()));
    finds("the emission of LSN 7", |counted| {
        counted.stretches[1].behind = 3;
        counted.stretches[1].received.pop();
    });
}

#[test]
fn a_refusal_without_need_is_found() {
    let verdict = |behind, word: &str, highest, allowance: &Allowance| {
        let refusal = Some(Refused { behind, word: word.to_owned(), highest });
        verdict(&Counted { refusal, ..flawless() }, allowance)
    };
    // The fifth emission is that of LSN 9.
    assert_eq!(verdict(4, "STALE_SEQUENCE", 9, &gone_to(9)), Ok(()));
    verdict(4, "STALE_SEQUENCE", 9, &gone_to(8)).expect_err("the older of the snapshots is before it");
    verdict(4, "STALE_SEQUENCE", 8, &gone_to(9)).expect_err("it was there at that time");
    verdict(6, "STALE_SEQUENCE", 10, &gone_to(10)).expect_err("it had all");
    let forgets = Allowance { forgets: true, ..gone_to(0) };
    assert_eq!(verdict(4, "STALE_SEQUENCE", 0, &forgets), Ok(()), "memory need not have it");
    verdict(6, "STALE_SEQUENCE", 0, &forgets).expect_err("it had all");
    for word in ["STALE_SEQUENCE", "INVALID_SEQUENCE", "SUBSCRIPTION_NOT_FOUND"] {
        verdict(4, word, 0, &gone_to(0)).expect_err(word);
    }
    verdict(4, "INVALID_SEQUENCE", 0, &forgets).expect_err("no number was taken back");
}
