//! Pools, one scenario per test.

use tidemark_pool::selector::WideTree;
use tidemark_pool::{
    Catalogue, CatalogueError, DRAWS_MAX, Draw, EPOCHS_KEPT, Empty, Item, Mode, Numbers, Pool, Refusal,
    Repeats, Secret, SoldOut, Stock,
};

fn pool(items: &[Item]) -> Pool<WideTree> {
    pool_with(items, Mode::FixedOdds, SoldOut::Renormalise)
}

fn pool_with(items: &[Item], mode: Mode, sold_out: SoldOut) -> Pool<WideTree> {
    let catalogue = Catalogue::with(items.to_vec(), mode, sold_out).expect("a catalogue");
    Pool::new(&catalogue, Secret::new([7; 32]), Secret::new([8; 32]))
}

/// Draws until the pool refuses; returns each drawn id and how often it was drawn.
fn drawn_to_the_end(pool: &mut Pool<WideTree>, at_most: usize) -> Vec<(String, usize)> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for _ in 0..at_most {
        let Ok(draw) = pool.draw() else { break };
        let id = draw.item.map_or("nothing", |item| pool.urn().id(item)).to_owned();
        match counts.iter_mut().find(|(known, _)| *known == id) {
            Some((_, count)) => *count += 1,
            None => counts.push((id, 1)),
        }
    }
    counts.sort();
    counts
}

fn counted(pairs: &[(&str, usize)]) -> Vec<(String, usize)> {
    pairs.iter().map(|&(id, count)| (id.to_owned(), count)).collect()
}

#[test]
fn every_unit_is_drawn_once_and_no_other() {
    for mode in [Mode::FixedOdds, Mode::PerUnit] {
        let items = [Item::limited("car", 1, 2), Item::limited("mug", 50, 5), Item::limited("pen", 9, 3)];
        let mut pool = pool_with(&items, mode, SoldOut::Renormalise);
        assert_eq!(drawn_to_the_end(&mut pool, 100), counted(&[("car", 2), ("mug", 5), ("pen", 3)]));
        assert_eq!(pool.draw(), Err(Empty));
        assert_eq!((pool.next_draw(), pool.urn().total_weight()), (10, 0));
    }
}

#[test]
fn draws_are_numbered_without_gaps_and_refused_ones_have_no_number() {
    let mut pool = pool(&[Item::limited("only", 1, 2)]);
    assert_eq!(pool.draw(), Ok(Draw { number: 0, item: Some(0) }));
    assert_eq!(pool.draw(), Ok(Draw { number: 1, item: Some(0) }));
    assert_eq!(pool.draw(), Err(Empty));
    pool.restock("only", 1).expect("it is there");
    assert_eq!(pool.draw(), Ok(Draw { number: 2, item: Some(0) }));
}

#[test]
fn odds_stay_until_an_item_is_sold_out_and_are_shared_among_the_others_then() {
    let mut pool = pool(&[Item::limited("rare", 1, 1), Item::unlimited("common", 9)]);
    let odds = |pool: &Pool<WideTree>| -> Vec<u64> {
        pool.urn().entries().map(|entry| entry.weight_in_force).collect()
    };
    assert_eq!((odds(&pool), pool.urn().total_weight()), (vec![1, 9], 10));
    while pool.urn().entry(0).expect("it is there").stock == Stock::Limited(1) {
        pool.draw().expect("there is enough");
    }
    assert_eq!((odds(&pool), pool.urn().total_weight()), (vec![0, 9], 9));
    assert_eq!(pool.urn().entry(0).expect("it is there").weight, 1, "the catalogue still has it");
    pool.give_back("rare", 1).expect("it was drawn");
    assert_eq!((odds(&pool), pool.urn().total_weight()), (vec![1, 9], 10));
}

#[test]
fn in_a_raffle_each_ticket_that_is_left_counts() {
    let items = [Item::limited("gold", 2, 3), Item::limited("silver", 1, 4)];
    let mut pool = pool_with(&items, Mode::PerUnit, SoldOut::Renormalise);
    assert_eq!(pool.urn().total_weight(), 10);
    let draw = pool.draw().expect("there are tickets");
    let lost = if draw.item == Some(0) { 2 } else { 1 };
    assert_eq!(pool.urn().total_weight(), 10 - lost);
}

#[test]
fn what_is_sold_out_leads_to_the_fallback_and_then_to_nothing() {
    let items =
        [Item::limited("car", 90, 1), Item::limited("voucher", 0, 3), Item::limited("mug", 10, 1_000_000)];
    let mut pool = pool_with(&items, Mode::FixedOdds, SoldOut::Fallback("voucher".into()));
    let drawn = drawn_to_the_end(&mut pool, 1_000);
    let count = |id: &str| drawn.iter().find(|(known, _)| known == id).map_or(0, |&(_, count)| count);
    assert_eq!((count("car"), count("voucher")), (1, 3));
    // The odds of sold-out items are not redistributed.
    assert!((60..140).contains(&count("mug")), "{drawn:?}");
    assert_eq!(count("nothing"), 1_000 - 4 - count("mug"));
}

#[test]
fn a_pool_of_which_nothing_at_all_is_left_refuses_whatever_its_rule() {
    let items = [Item::limited("car", 9, 1), Item::limited("voucher", 0, 2)];
    for sold_out in [SoldOut::Renormalise, SoldOut::NoPrize, SoldOut::Fallback("voucher".into())] {
        let units = if matches!(sold_out, SoldOut::Fallback(_)) { 3 } else { 1 };
        for mode in [Mode::FixedOdds, Mode::PerUnit] {
            let mut pool = pool_with(&items, mode, sold_out.clone());
            for _ in 0..units {
                assert!(pool.draw().expect("something is left").item.is_some());
            }
            assert_eq!(pool.draw(), Err(Empty), "{mode:?}, {sold_out:?}");
        }
    }
}

#[test]
fn several_draws_at_once_are_all_or_nothing() {
    let mut pool = pool(&[Item::limited("a", 1, 3), Item::limited("b", 5, 4)]);
    let mut drawn = Vec::new();
    let refused = pool.draw_many(8, Repeats::Allowed, &mut drawn);
    assert_eq!(refused, Err(Refusal::NotSoMany { wanted: 8, left: 7 }));
    assert_eq!((drawn.len(), pool.next_draw(), pool.urn().total_weight()), (0, 0, 6));
    pool.draw_many(7, Repeats::Allowed, &mut drawn).expect("so many are there");
    assert_eq!(drawn.iter().map(|draw| draw.number).collect::<Vec<_>>(), (0..7).collect::<Vec<_>>());
    assert_eq!(pool.draw(), Err(Empty));
    for count in [0, DRAWS_MAX + 1] {
        let refused = pool.draw_many(count, Repeats::Allowed, &mut drawn);
        assert_eq!(refused, Err(Refusal::Count { count, max: DRAWS_MAX }));
    }
}

#[test]
fn without_repeats_each_item_comes_once_a_call() {
    let mut pool =
        pool(&[Item::unlimited("a", 1), Item::unlimited("b", 1_000_000), Item::limited("c", 1, 5)]);
    for _ in 0..3 {
        let mut drawn = Vec::new();
        pool.draw_many(3, Repeats::Excluded, &mut drawn).expect("three are there");
        let mut items: Vec<_> = drawn.iter().map(|draw| draw.item).collect();
        items.sort();
        assert_eq!(items, [Some(0), Some(1), Some(2)]);
    }
    let refused = pool.draw_many(4, Repeats::Excluded, &mut Vec::new());
    assert_eq!(refused, Err(Refusal::NotSoManyItems { wanted: 4, left: 3 }));
    assert_eq!((pool.next_draw(), pool.urn().total_weight()), (9, 1_000_002), "nothing stays hidden");
}

#[test]
fn items_come_and_go_and_keep_their_numbers() {
    let mut pool = pool(&[Item::limited("a", 1, 1), Item::limited("b", 1, 1)]);
    assert_eq!(pool.urn().version(), 1);
    pool.remove("a").expect("it is there");
    assert_eq!(pool.remove("a"), Err(Refusal::UnknownItem { id: "a".into() }));
    pool.add(&Item::limited("a", 4, 1)).expect("the id is free");
    let refused = pool.add(&Item::limited("b", 4, 1));
    let duplicate = CatalogueError::DuplicateId { number: 4, first: 2, id: "b".into() };
    assert_eq!(refused, Err(Refusal::Catalogue(duplicate)));
    assert_eq!(
        (pool.urn().find("a"), pool.urn().id(0), pool.urn().entry(0), pool.urn().version()),
        (Some(2), "a", None, 3)
    );
    assert_eq!(drawn_to_the_end(&mut pool, 9), counted(&[("a", 1), ("b", 1)]));
}

#[test]
fn no_more_comes_back_than_was_drawn() {
    let mut pool = pool(&[Item::limited("a", 1, 2)]);
    pool.draw().expect("two are there");
    let refused = pool.give_back("a", 2);
    assert_eq!(refused, Err(Refusal::NotDrawn { id: "a".into(), count: 2, drawn: 1 }));
    pool.set_stock("a", Stock::Unlimited).expect("fits");
    pool.give_back("a", 1).expect("it was drawn");
    assert_eq!(pool.urn().entry(0).map(|entry| (entry.stock, entry.drawn)), Some((Stock::Unlimited, 0)));
}

#[test]
fn stock_that_became_limited_meanwhile_is_not_made_by_taking_draws_back() {
    let mut pool = pool(&[Item::unlimited("a", 1)]);
    pool.stage();
    pool.draw_many(5, Repeats::Allowed, &mut Vec::new()).expect("without an end");
    pool.set_stock("a", Stock::Limited(3)).expect("fits");
    pool.draw().expect("three are there");
    assert_eq!(pool.staged_draws(), 6);
    pool.revert();
    let seen = pool.urn().entry(0).map(|entry| (entry.stock, entry.drawn));
    assert_eq!((seen, pool.next_draw(), pool.urn().version()), (Some((Stock::Unlimited, 0)), 0, 1));
}

#[test]
fn the_secret_reproduces_each_draw() {
    let items = [Item::unlimited("a", 3), Item::unlimited("b", 5), Item::unlimited("c", 11)];
    let mut pool = pool(&items);
    let first: Vec<u32> = (0..100).filter_map(|_| pool.draw().expect("without an end").item).collect();
    let commitment = pool.commitment();
    let promised = pool.next_commitment();
    let over = pool.begin_epoch(b"a client's seed", Secret::new([9; 32])).expect("nothing is staged");
    let second: Vec<u32> = (0..100).filter_map(|_| pool.draw().expect("without an end").item).collect();

    // The revealed secret matches the commitment that was published before.
    assert_eq!(over.epoch.secret.commitment(), commitment);
    assert_eq!((over.epoch.index, over.epoch.first_draw, over.end), (0, 0, 100));
    assert_eq!((pool.commitment(), pool.epoch().first_draw), (promised, 100));
    let scan = [3, 8, 19];
    let again = |key: [u8; 32], draws: std::ops::Range<u64>| -> Vec<u32> {
        let mut numbers = Numbers::new(key);
        // In reverse order: no draw depends on the one before it.
        let mut items: Vec<u32> = draws
            .rev()
            .map(|draw| scan.iter().filter(|&&end| numbers.below(draw, 19) >= end).count() as u32)
            .collect();
        items.reverse();
        items
    };
    assert_eq!(again(over.epoch.secret.key(b""), 0..100), first);
    assert_eq!(again(pool.epoch().secret.key(b"a client's seed"), 100..200), second);
}

#[test]
fn an_epoch_that_is_taken_back_has_not_begun() {
    let mut pool = pool(&[Item::unlimited("a", 1), Item::unlimited("b", 1)]);
    pool.stage();
    let (epoch, commitments) = (pool.epoch().clone(), (pool.commitment(), pool.next_commitment()));
    let before: Vec<_> = (0..50).map(|_| pool.draw()).collect();
    pool.revert();
    pool.stage();
    pool.begin_epoch(b"seed", Secret::new([9; 32])).expect("fits");
    let between: Vec<_> = (0..50).map(|_| pool.draw()).collect();
    pool.revert();
    assert_eq!((pool.epoch(), (pool.commitment(), pool.next_commitment())), (&epoch, commitments));
    let behind: Vec<_> = (0..50).map(|_| pool.draw()).collect();
    assert!(before == behind && before != between);
}

#[test]
fn the_secrets_of_the_last_epochs_can_be_asked_for_and_no_other() {
    let mut pool = pool(&[Item::unlimited("a", 1)]);
    assert_eq!((pool.revealed(0), pool.first_known()), (None, 0), "it is not over");
    let mut shown = Vec::new();
    for epoch in 0..EPOCHS_KEPT as u64 + 2 {
        pool.draw().expect("without an end");
        let after = Secret::new([epoch as u8; 32]);
        shown.push(pool.begin_epoch(&epoch.to_le_bytes(), after).expect("a short seed"));
    }
    assert_eq!(pool.first_known(), 2);
    for (index, shown) in (0..).zip(&shown) {
        assert_eq!(pool.revealed(index).as_ref(), (index >= 2).then_some(shown));
    }
    assert_eq!(pool.revealed(shown.len() as u64), None);
    // A reverted epoch restores the secrets that it had evicted.
    pool.stage();
    pool.begin_epoch(b"", Secret::new([0; 32])).expect("a short seed");
    assert_eq!((pool.first_known(), pool.revealed(2)), (3, None));
    pool.revert();
    assert_eq!((pool.first_known(), pool.revealed(2).as_ref()), (2, Some(&shown[2])));
}

#[test]
fn a_clients_seed_has_its_limit() {
    let mut pool = pool(&[Item::unlimited("a", 1)]);
    let long = pool.begin_epoch(&[0; 257], Secret::new([9; 32]));
    assert_eq!(long, Err(Refusal::SeedTooLong { bytes: 257, max: 256 }));
    assert_eq!(pool.begin_epoch(&[0; 256], Secret::new([9; 32])).expect("fits").end, 0);
}

#[test]
fn formatting_a_pool_shows_no_secret() {
    let pool = pool(&[Item::unlimited("a", 1)]);
    let shown = format!("{pool:?}");
    assert!(shown.contains("Secret(hidden)") && !shown.contains("7, 7"), "{shown}");
}
