//! Rules about users, one scenario per test.

use std::collections::HashSet;
use tidemark_pool::selector::WideTree;
use tidemark_pool::{
    AMOUNT_MAX, By, Catalogue, Draw, Empty, Events, Guarantee, Item, Limit, Mode, Pool, Refusal, Repeats,
    Rules, Scope, Secret, Soft, SoldOut,
};

const DAY_MS: u64 = 24 * 3600 * 1000;

fn pool_with(
    items: &[Item],
    sold_out: SoldOut,
    limits: &[Limit],
    guarantees: &[Guarantee],
) -> Pool<WideTree> {
    let rules = Rules::new(limits.to_vec(), guarantees.to_vec()).expect("they are sound");
    let catalogue = Catalogue::with(items.to_vec(), Mode::FixedOdds, sold_out).expect("a catalogue");
    let catalogue = catalogue.ruled(rules).expect("they name items");
    Pool::new(&catalogue, Secret::new([7; 32]), Secret::new([8; 32]))
}

fn pool(items: &[Item], limits: &[Limit], guarantees: &[Guarantee]) -> Pool<WideTree> {
    pool_with(items, SoldOut::Renormalise, limits, guarantees)
}

fn draws(max: u64, per_ms: Option<u64>) -> Limit {
    Limit { max, per_ms, wins_of: None }
}

fn wins(max: u64, per_ms: Option<u64>, of: &[&str]) -> Limit {
    Limit { max, per_ms, wins_of: Some(of.iter().map(|id| (*id).into()).collect()) }
}

fn guarantee(after: u64, of: &str) -> Guarantee {
    Guarantee { after, of: vec![of.into()], scope: Scope::User, soft: None }
}

fn user(name: &str, now_ms: u64) -> By<'_> {
    By { user: Some(name.as_bytes()), request: None, now_ms }
}

fn ask(pool: &mut Pool<WideTree>, by: &By<'_>, count: usize) -> Result<Vec<Option<u32>>, Refusal> {
    let mut drawn = Vec::new();
    pool.draw_by(by, count, Repeats::Allowed, &mut drawn)?;
    Ok(drawn.iter().map(|draw| draw.item).collect())
}

#[test]
fn so_many_draws_a_day_and_no_more() {
    let mut pool = pool(&[Item::unlimited("mug", 1)], &[draws(3, Some(DAY_MS))], &[]);
    let noon = 10 * DAY_MS + DAY_MS / 2;
    ask(&mut pool, &user("mira", noon), 2).expect("two of three");
    let limited = Err(Refusal::Limited { max: 3, again_ms: Some(11 * DAY_MS) });
    assert_eq!(ask(&mut pool, &user("mira", noon), 2), limited, "all or nothing");
    ask(&mut pool, &user("mira", noon), 1).expect("the third");
    assert_eq!(ask(&mut pool, &user("mira", 11 * DAY_MS - 1), 1), limited);
    ask(&mut pool, &user("noah", noon), 3).expect("another user");
    ask(&mut pool, &user("mira", 11 * DAY_MS), 3).expect("another day");
    assert_eq!(pool.next_draw(), 9);
    // A clock that goes back does not restore a limit.
    assert!(matches!(ask(&mut pool, &user("mira", noon), 1), Err(Refusal::Limited { .. })));
    assert_eq!(ask(&mut pool, &user("olga", noon), 4), Err(Refusal::MoreThanLimit { count: 4, max: 3 }));
}

#[test]
fn a_draw_must_name_its_user_where_users_are_counted() {
    let mut pool = pool(&[Item::unlimited("mug", 1)], &[draws(3, None)], &[]);
    assert_eq!(ask(&mut pool, &By::default(), 1), Err(Refusal::NoUser));
    assert_eq!(pool.draw_many(1, Repeats::Allowed, &mut Vec::new()), Err(Refusal::NoUser));
    assert_eq!(pool.draw(), Err(Empty));
    assert_eq!((pool.next_draw(), pool.users()), (0, 0));
}

#[test]
fn what_a_user_has_won_often_enough_counts_as_sold_out_for_them() {
    let items = [Item::unlimited("car", 1_000_000), Item::unlimited("mug", 1)];
    let mut renormalised = pool(&items, &[wins(2, None, &["car"])], &[]);
    let drawn = ask(&mut renormalised, &user("mira", 0), 50).expect("there are mugs");
    assert_eq!(drawn.iter().filter(|item| **item == Some(0)).count(), 2);
    assert_eq!(renormalised.urn().total_weight(), 1_000_001, "nothing stays hidden");

    let mut nothing = pool_with(&items, SoldOut::NoPrize, &[wins(2, None, &["car"])], &[]);
    let drawn = ask(&mut nothing, &user("mira", 0), 50).expect("nothing is something");
    assert_eq!(drawn.iter().filter(|item| **item == Some(0)).count(), 2);
    assert!(drawn.iter().filter(|item| item.is_none()).count() > 40, "{drawn:?}");

    let mut fallback = pool_with(&items, SoldOut::Fallback("mug".into()), &[wins(2, None, &["car"])], &[]);
    let drawn = ask(&mut fallback, &user("mira", 0), 50).expect("there are mugs");
    assert_eq!(drawn.iter().filter(|item| **item == Some(1)).count(), 48);
}

#[test]
fn a_user_barred_from_all_remaining_items_learns_when_to_retry() {
    let items = [Item::unlimited("car", 1), Item::unlimited("mug", 1)];
    let limits = [wins(1, Some(DAY_MS), &["car"]), wins(1, None, &["mug"])];
    for sold_out in [SoldOut::Renormalise, SoldOut::NoPrize, SoldOut::Fallback("mug".into())] {
        let mut pool = pool_with(&items, sold_out, &limits, &[]);
        while ask(&mut pool, &user("mira", 5), 1).is_ok() {}
        let refused = ask(&mut pool, &user("mira", 5), 1);
        assert_eq!(refused, Err(Refusal::Limited { max: 1, again_ms: Some(DAY_MS) }));
        let car = (0..99).find_map(|_| ask(&mut pool, &user("mira", DAY_MS), 1).ok()?[0]);
        assert_eq!(car, Some(0), "the mug is won for ever");
    }
}

#[test]
fn what_comes_back_is_a_win_less() {
    let mut pool = pool(&[Item::unlimited("car", 1)], &[wins(1, Some(DAY_MS), &["car"])], &[]);
    let reserve = |pool: &mut Pool<WideTree>, now_ms| {
        pool.reserve_by(&user("mira", now_ms), 1, Repeats::Allowed, 9).map(|reservation| reservation.number())
    };
    let first = reserve(&mut pool, 5).expect("the first");
    assert!(reserve(&mut pool, 5).is_err());
    pool.cancel(first).expect("it is open");
    let second = reserve(&mut pool, 5).expect("the first was cancelled");
    assert_eq!(pool.expire_one(9), Some(second));
    ask(&mut pool, &user("mira", 6), 1).expect("the second has expired");
    pool.give_back_by(&user("mira", 7), "car", 1).expect("it was drawn");
    let third = reserve(&mut pool, 8).expect("the third was returned");
    // The return of yesterday's wins does not change today's count.
    ask(&mut pool, &user("mira", DAY_MS), 1).expect("another day");
    pool.cancel(third).expect("it is open");
    assert!(reserve(&mut pool, DAY_MS).is_err());
    // A return without a user changes no user's count.
    pool.give_back("car", 1).expect("it was drawn");
    assert!(reserve(&mut pool, DAY_MS).is_err());
}

#[test]
fn after_so_many_draws_in_vain_the_next_one_gives_what_is_guaranteed() {
    let items = [Item::unlimited("car", 1), Item::unlimited("mug", 1_000_000_000)];
    let mut pool = pool(&items, &[], &[guarantee(4, "car")]);
    let drawn: Vec<Option<u32>> =
        (0..15).flat_map(|_| ask(&mut pool, &user("mira", 0), 1).expect("without an end")).collect();
    let cars: Vec<usize> = (0..15).filter(|draw| drawn[*draw] == Some(0)).collect();
    assert_eq!(cars, [4, 9, 14], "from one call to the next");
    ask(&mut pool, &user("noah", 0), 3).expect("without an end");
    assert_eq!(pool.counted(b"noah").map(|counted| counted.misses), Some(vec![3]));
    assert_eq!(ask(&mut pool, &user("mira", 0), 4), Ok(vec![Some(1); 4]), "each has their own");
    assert_eq!(ask(&mut pool, &user("noah", 0), 2), Ok(vec![Some(1), Some(0)]));
    assert_eq!(pool.users(), 1, "of noah there is nothing to know");
}

#[test]
fn a_guarantee_for_the_whole_pool_counts_the_draws_of_all_users() {
    let items = [Item::limited("car", 1, 1), Item::unlimited("mug", 1_000_000_000)];
    let mut pool = pool(&items, &[], &[Guarantee { scope: Scope::Pool, ..guarantee(2, "car") }]);
    let mut drawn = vec![pool.draw().expect("without an end")];
    drawn.push(pool.draw().expect("without an end"));
    drawn.push(pool.draw().expect("without an end"));
    assert_eq!(drawn[2], Draw { number: 2, item: Some(0) });
    // When none of the guaranteed items is left, draws are ordinary.
    for _ in 0..9 {
        assert_eq!(pool.draw().expect("without an end").item, Some(1));
    }
    pool.give_back("car", 1).expect("it was drawn");
    assert_eq!(pool.draw().expect("without an end").item, Some(0));
}

#[test]
fn several_tracks_count_by_themselves_and_the_first_goes_first() {
    let items =
        [Item::unlimited("car", 1), Item::unlimited("bike", 1), Item::unlimited("mug", 1_000_000_000)];
    let mut pool = pool(&items, &[], &[guarantee(5, "car"), guarantee(2, "bike")]);
    let drawn = ask(&mut pool, &user("mira", 0), 8).expect("without an end");
    let named: Vec<u32> = drawn.into_iter().flatten().collect();
    assert_eq!(named, [2, 2, 1, 2, 2, 0, 1, 2]);
}

#[test]
fn odds_grow_from_a_draw_on() {
    // A new user's first 10 draws have odds of 1:99, the eleventh has odds of 100:99, and so on.
    let items = [Item::unlimited("car", 1), Item::unlimited("mug", 99)];
    let soft = Some(Soft { from: 11, step: 99 });
    let mut pool = pool(&items, &[], &[Guarantee { soft, ..guarantee(1000, "car") }]);
    let (mut early, mut eleventh, mut latest) = (0, 0, 0);
    for number in 0..400 {
        let name = format!("user {number}");
        let drawn = ask(&mut pool, &user(&name, 0), 60).expect("without an end");
        let first = drawn.iter().position(|item| *item == Some(0)).expect("by then it is nearly certain");
        latest = latest.max(first);
        early += usize::from(first < 10);
        eleventh += usize::from(first == 10);
    }
    // The expected values are 38 and 182; the bounds are more than five standard deviations away.
    assert!((5..80).contains(&early) && (120..245).contains(&eleventh), "{early} and {eleventh}");
    assert!(latest < 30, "{latest}");
}

#[test]
fn weights_that_a_guarantee_makes_too_large_are_refused() {
    let items = [Item::unlimited("car", AMOUNT_MAX / 4), Item::unlimited("mug", 1)];
    let soft = Some(Soft { from: 1, step: 5 });
    let mut pool = pool(&items, &[], &[Guarantee { soft, ..guarantee(3, "car") }]);
    assert_eq!(ask(&mut pool, &user("mira", 0), 1), Err(Refusal::TooHeavy));
    assert_eq!((pool.next_draw(), pool.users()), (0, 0));
    pool.reweight("car", 5).expect("fits");
    ask(&mut pool, &user("mira", 0), 1).expect("now it fits");
}

#[test]
fn a_call_whose_weights_might_become_too_large_is_refused_before_it_draws() {
    // The car may count 7 times in the second draw and 10 times in the third: only then are all
    // weights together too large.
    let items = [Item::unlimited("car", AMOUNT_MAX / 8), Item::unlimited("mug", AMOUNT_MAX / 8)];
    let soft = Some(Soft { from: 1, step: 3 });
    let mut pool = pool(&items, &[], &[Guarantee { soft, ..guarantee(9, "car") }]);
    assert_eq!(ask(&mut pool, &user("mira", 0), 3), Err(Refusal::TooHeavy));
    assert_eq!((pool.next_draw(), pool.users()), (0, 0));
    ask(&mut pool, &user("mira", 0), 2).expect("7 times at most");
}

#[test]
fn a_call_beyond_what_a_user_may_win_gives_nothing_in_the_end() {
    let items = [Item::unlimited("car", 1), Item::unlimited("mug", 1)];
    let limits = [wins(2, None, &["car"]), wins(3, None, &["mug"]), draws(9, None)];
    for sold_out in [SoldOut::Renormalise, SoldOut::NoPrize, SoldOut::Fallback("mug".into())] {
        let mut pool = pool_with(&items, sold_out, &limits, &[guarantee(5, "car")]);
        let drawn = ask(&mut pool, &user("mira", 0), 8).expect("the first is possible");
        let count = |item| drawn.iter().filter(|drawn| **drawn == item).count();
        assert!(drawn.len() == 8 && count(Some(0)) <= 2 && count(Some(1)) <= 3, "{drawn:?}");
        let counted = pool.counted(b"mira").expect("there are rules");
        let wins: Vec<u64> = counted.limits.iter().map(|(count, _)| *count).collect();
        assert_eq!(wins, [count(Some(0)) as u64, count(Some(1)) as u64, 8], "all of them are draws");
        let limited = Err(Refusal::Limited { max: 9, again_ms: None });
        assert_eq!(ask(&mut pool, &user("mira", 0), 2), limited, "one is left");
    }
}

#[test]
fn different_items_are_drawn_within_limits() {
    let items = [Item::unlimited("a", 5), Item::unlimited("b", 5), Item::unlimited("c", 5)];
    let mut pool = pool(&items, &[wins(1, None, &["a"])], &[guarantee(1, "b")]);
    let mut different = |count| {
        let mut drawn = Vec::new();
        pool.draw_by(&user("mira", 0), count, Repeats::Excluded, &mut drawn).map(|()| {
            drawn.sort_by_key(|draw| draw.item);
            drawn.iter().filter_map(|draw| draw.item).collect::<Vec<_>>()
        })
    };
    assert_eq!(different(3), Ok(vec![0, 1, 2]));
    assert_eq!(different(2), Ok(vec![1, 2]), "the first may not be won again");
    assert_eq!(different(3), Err(Refusal::Limited { max: 1, again_ms: None }));
    assert_eq!(pool.urn().total_weight(), 15, "nothing stays hidden");
}

#[test]
fn draws_by_rules_are_made_again_from_the_secret() {
    let items = [Item::unlimited("car", 1), Item::unlimited("mug", 9)];
    let limits = [draws(40, Some(DAY_MS)), wins(3, Some(DAY_MS), &["car"])];
    let guarantees = [Guarantee { soft: Some(Soft { from: 3, step: 2 }), ..guarantee(7, "car") }];
    let new = || pool(&items, &limits, &guarantees);
    let (mut first, mut second) = (new(), new());
    first.stage();
    for turn in 0..200 {
        _ = ask(&mut first, &user(["mira", "noah"][turn % 2], turn as u64 * DAY_MS / 50), 1 + turn % 3);
    }
    assert!(first.staged_draws() > 100);
    for event in Events::new(first.staged()) {
        second.verify(&event.expect("an event")).expect("it follows from the secret");
    }
    assert_eq!(second.counted(b"mira"), first.counted(b"mira"));
    assert_eq!(second.next_draw(), first.next_draw());
}

#[test]
fn distinct_items_for_a_user_take_time_linear_in_the_items() {
    // The limit is one win among a thousand items: after it, the others are barred. Finding them
    // in ten thousand draws takes negligible time.
    let ids: Vec<String> = (0..12_000).map(|item| item.to_string()).collect();
    let items: Vec<Item> = ids.iter().map(|id| Item::unlimited(id.as_str(), 1)).collect();
    let barred: Vec<&str> = ids[..1_000].iter().map(String::as_str).collect();
    let mut pool = pool(&items, &[wins(1, None, &barred)], &[]);
    let mut drawn = Vec::new();
    pool.draw_by(&user("mira", 0), 10_000, Repeats::Excluded, &mut drawn).expect("there are so many");
    assert_eq!(drawn.iter().filter(|draw| draw.item < Some(1_000)).count(), 1);
    let different: HashSet<_> = drawn.iter().map(|draw| draw.item).collect();
    assert_eq!(different.len(), 10_000);
}

#[test]
fn a_user_with_many_limits_draws_fewer_in_one_request() {
    let ids: Vec<String> = (0..1_024).map(|item| item.to_string()).collect();
    let items: Vec<Item> = ids.iter().map(|id| Item::unlimited(id.as_str(), 1)).collect();
    let all: Vec<&str> = ids.iter().map(String::as_str).collect();
    let limits = [wins(1_000_000, None, &all), wins(1_000_000, None, &all)];
    let mut pool = pool(&items, &limits, &[]);
    let refused = ask(&mut pool, &user("mira", 0), 8_193);
    assert_eq!(refused, Err(Refusal::Count { count: 8_193, max: 8_192 }));
    assert_eq!(ask(&mut pool, &user("mira", 0), 8_192).map(|drawn| drawn.len()), Ok(8_192));
}
