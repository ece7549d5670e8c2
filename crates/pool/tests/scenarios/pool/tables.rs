//! Nested tables, one scenario per test.

use tidemark_pool::selector::WideTree;
use tidemark_pool::{
    By, Catalogue, CatalogueError, ChainedPool, Empty, Events, Guarantee, Item, Lead, Limit, Mode, Numbers,
    Pool, Refusal, Repeats, Rules, Scope, Secret, SoldOut, Stock, Table,
};

fn secrets() -> (Secret, Secret) {
    (Secret::new([7; 32]), Secret::new([8; 32]))
}

fn table(name: &str, items: Vec<Item>) -> Table {
    Table { name: name.into(), items }
}

fn lead(item: &str, table: &str) -> Lead {
    Lead { item: item.into(), table: table.into() }
}

/// Returns a catalogue of common mugs and rare wheels, each in a table that gives what it has.
fn rarities(sold_out: SoldOut) -> Catalogue {
    let first = vec![
        Item::unlimited("common", 90),
        Item::unlimited("rare", 10),
        Item::unlimited("nothing", u64::from(sold_out != SoldOut::Renormalise)),
    ];
    let mugs = vec![Item::limited("white mug", 2, 20), Item::limited("blue mug", 1, 10)];
    let wheels = vec![Item::limited("car", 1, 1), Item::limited("bicycle", 4, 2)];
    let tables = vec![table("mugs", mugs), table("wheels", wheels)];
    let catalogue = Catalogue::with(first, Mode::FixedOdds, sold_out).expect("a catalogue");
    catalogue.nested(tables, &[lead("common", "mugs"), lead("rare", "wheels")]).expect("they fit")
}

fn pool(catalogue: &Catalogue) -> Pool<WideTree> {
    let (secret, next) = secrets();
    Pool::new(catalogue, secret, next)
}

/// Draws until nothing is left; returns the ids of the drawn items.
fn all(pool: &mut Pool<WideTree>) -> Vec<String> {
    let mut drawn = Vec::new();
    while let Ok(draw) = pool.draw() {
        drawn.push(draw.item.map_or_else(|| "-".to_owned(), |item| pool.urn().id(item).to_owned()));
    }
    drawn
}

#[test]
fn every_unit_of_every_table_is_drawn_once_and_nothing_that_only_leads() {
    let mut pool = pool(&rarities(SoldOut::Renormalise));
    let mut drawn = all(&mut pool);
    drawn.sort();
    let expected = [vec!["bicycle"; 2], vec!["blue mug"; 10], vec!["car"; 1], vec!["white mug"; 20]].concat();
    assert_eq!(drawn, expected);
    assert_eq!((pool.draw(), pool.next_draw()), (Err(Empty), 33));
}

/// With the secret, an auditor can reproduce each draw from weights and numbers alone: one number
/// for each table on the way.
#[test]
fn each_draw_follows_from_one_number_for_each_table_on_its_way() {
    let (mut pool, mut numbers) = (pool(&rarities(SoldOut::Renormalise)), Numbers::new(secrets().0.key(b"")));
    let mut left = [20_u64, 10, 1, 2];
    for draw in 0..33 {
        let share = |item: usize| if left[item] > 0 { [2, 1, 1, 4][item] } else { 0 };
        let (mugs, wheels) = (share(0) + share(1), share(2) + share(3));
        let (common, rare) = (if mugs > 0 { 90 } else { 0 }, if wheels > 0 { 10 } else { 0 });
        let is_common = numbers.below(draw, common + rare) < common;
        let (first, sum) = if is_common { (0, mugs) } else { (2, wheels) };
        let item = first + usize::from(numbers.below_at(1, draw, sum) >= share(first));
        left[item] -= 1;
        // The items of the first table precede those of the other tables.
        assert_eq!(pool.draw().map(|draw| draw.item), Ok(Some(3 + item as u32)), "draw {draw}");
    }
}

#[test]
fn a_table_that_has_sold_out_closes_what_leads_to_it_until_something_comes_back() {
    let mut pool = pool(&rarities(SoldOut::Renormalise));
    let share =
        |pool: &Pool<WideTree>, item: u32| pool.urn().entry(item).expect("it is there").weight_in_force;
    pool.set_stock("car", Stock::Limited(0)).expect("it is there");
    assert_eq!((share(&pool, 1), pool.urn().total_weight()), (10, 100), "there are bicycles");
    pool.stage();
    pool.set_stock("bicycle", Stock::Limited(0)).expect("it is there");
    assert_eq!((share(&pool, 1), pool.urn().total_weight()), (0, 90));
    pool.revert();
    assert_eq!((share(&pool, 1), pool.urn().total_weight()), (10, 100));
    pool.remove("bicycle").expect("it is there");
    assert_eq!(pool.urn().total_weight(), 90, "what is gone is as good as sold out");
    pool.restock("car", 1).expect("it is there");
    pool.reweight("rare", 30).expect("it is there");
    assert_eq!((share(&pool, 1), pool.urn().total_weight()), (30, 120));
}

#[test]
fn what_is_sold_out_in_a_table_leads_where_the_pools_rule_says() {
    let mut nothing = pool(&rarities(SoldOut::NoPrize));
    for id in ["white mug", "blue mug", "bicycle", "nothing"] {
        nothing.set_stock(id, Stock::Limited(0)).expect("it is there");
    }
    let drawn = all(&mut nothing);
    assert_eq!(
        drawn.iter().filter(|id| *id != "-").collect::<Vec<_>>(),
        ["car"],
        "nothing is left behind it"
    );
    assert_eq!(
        drawn.last().map(String::as_str),
        Some("car"),
        "draws that meet what is sold out go on until then"
    );

    let mut fallback = pool(&rarities(SoldOut::Fallback("nothing".into())));
    fallback.set_stock("white mug", Stock::Limited(0)).expect("it is there");
    let drawn: Vec<_> = (0..1_000).map(|_| fallback.draw().expect("there is something").item).collect();
    assert!(drawn.iter().flatten().filter(|item| **item == 2).count() > 500, "the white mugs lead there");
}

#[test]
fn different_items_are_drawn_from_all_tables_and_no_more_than_there_are() {
    let mut pool = pool(&rarities(SoldOut::Renormalise));
    pool.reweight("nothing", 1).expect("it is there");
    let mut drawn = Vec::new();
    pool.draw_many(5, Repeats::Excluded, &mut drawn).expect("there are five");
    let mut items: Vec<_> = drawn.iter().filter_map(|draw| draw.item).collect();
    items.sort_unstable();
    assert_eq!(items, [2, 3, 4, 5, 6]);
    let too_many = pool.draw_many(6, Repeats::Excluded, &mut drawn);
    assert!(matches!(too_many, Err(Refusal::NotSoManyItems { wanted: 6, .. })), "{too_many:?}");
}

#[test]
fn a_table_may_be_reached_by_several_ways_and_its_stock_is_one() {
    let first = vec![Item::unlimited("gold", 1), Item::unlimited("silver", 1)];
    let gold = vec![Item::limited("car", 1, 1), Item::unlimited("gold treasure", 1)];
    let silver = vec![Item::limited("bicycle", 1, 1), Item::unlimited("silver treasure", 1)];
    let treasure = vec![Item::limited("ring", 1, 3)];
    let tables = vec![table("gold", gold), table("silver", silver), table("treasure", treasure)];
    let leads = [
        lead("gold", "gold"),
        lead("silver", "silver"),
        lead("gold treasure", "treasure"),
        lead("silver treasure", "treasure"),
    ];
    let catalogue = Catalogue::new(first).expect("a catalogue").nested(tables, &leads).expect("they fit");
    let mut drawn = all(&mut pool(&catalogue));
    drawn.sort();
    assert_eq!(drawn, ["bicycle", "car", "ring", "ring", "ring"]);
}

#[test]
fn a_guarantee_of_what_leads_to_a_table_is_met_by_all_that_is_behind_it() {
    let guarantee = Guarantee { after: 3, of: vec!["rare".into()], scope: Scope::Pool, soft: None };
    let rules = Rules::new(Vec::new(), vec![guarantee]).expect("it is sound");
    let catalogue = rarities(SoldOut::Renormalise).ruled(rules).expect("it names an item");
    let mut pool = pool(&catalogue);
    pool.restock("car", 100).expect("it is there");
    let mut without = 0;
    for _ in 0..30 {
        let item = pool.draw().expect("there is something").item.expect("nothing is not drawn");
        without = if item >= 5 { 0 } else { without + 1 };
        assert!(without <= 3, "the fourth is a car or a bicycle");
    }
}

#[test]
fn limits_count_items_of_any_table() {
    let limit = Limit { max: 1, per_ms: None, wins_of: Some(vec!["car".into(), "bicycle".into()]) };
    let rules = Rules::new(vec![limit], Vec::new()).expect("it is sound");
    let catalogue = rarities(SoldOut::Renormalise).ruled(rules).expect("it names items");
    let mut pool = pool(&catalogue);
    pool.reweight("rare", 1_000).expect("it is there");
    let mut drawn = Vec::new();
    let by = By { user: Some(b"mira"), ..By::default() };
    pool.draw_by(&by, 20, Repeats::Allowed, &mut drawn).expect("there are mugs");
    let wheels = drawn.iter().filter(|draw| draw.item.is_some_and(|item| item >= 5)).count();
    assert_eq!(wheels, 1, "the way there is closed for a user that has one");
    let other = By { user: Some(b"noah"), ..By::default() };
    pool.draw_by(&other, 5, Repeats::Allowed, &mut drawn).expect("there is something");
    assert_eq!(
        pool.urn().entry(1).map(|entry| entry.weight_in_force),
        Some(1_000),
        "and open for all others"
    );
}

#[test]
fn what_leads_has_no_stock_and_is_never_given_back() {
    let mut pool = pool(&rarities(SoldOut::Renormalise));
    let leads = Err(Refusal::Leads { id: "rare".into() });
    assert_eq!(pool.set_stock("rare", Stock::Limited(5)), leads);
    assert!(matches!(pool.give_back("rare", 1), Err(Refusal::NotDrawn { drawn: 0, .. })));
    pool.add(&Item::limited("hat", 5, 1)).expect("the id is free");
    assert_eq!(
        pool.urn().entry(7).and_then(|entry| entry.table),
        None,
        "what is added is in the first table"
    );
    pool.remove("rare").expect("it is there");
    assert_eq!(pool.urn().total_weight(), 95);
    let taken: Vec<_> = all(&mut pool);
    assert_eq!(taken.len(), 31, "nothing leads to the wheels any more");
}

#[test]
fn draws_through_tables_are_made_again_from_the_secret_and_checked_by_an_auditor() {
    let catalogue = rarities(SoldOut::NoPrize);
    let mut made = pool(&catalogue);
    made.stage();
    for _ in 0..20 {
        made.draw().expect("there is something");
    }
    made.reserve(3, Repeats::Excluded, 5).expect("there is something");
    let log = made.staged().to_vec();
    for again in [Pool::<WideTree>::apply, Pool::<WideTree>::verify] {
        let mut pool = pool(&catalogue);
        for event in Events::new(&log) {
            again(&mut pool, &event.expect("an event")).expect("it was so");
        }
        let drawn = |pool: &Pool<WideTree>| pool.urn().entries().map(|entry| entry.drawn).collect::<Vec<_>>();
        assert_eq!(drawn(&pool), drawn(&made));
    }
    // Another layout of the same items is another pool.
    let flat =
        Catalogue::with(catalogue.items().to_vec(), Mode::FixedOdds, SoldOut::NoPrize).expect("a catalogue");
    assert_ne!(ChainedPool::new(pool(&catalogue)).chain, ChainedPool::new(pool(&flat)).chain);
}

#[test]
fn tables_that_do_not_fit_together_are_refused() {
    let one = |id: &str| vec![Item::unlimited(id, 1)];
    let nested = |tables: Vec<Table>, leads: &[Lead]| -> Result<Catalogue, CatalogueError> {
        let first = vec![Item::unlimited("a", 1), Item::limited("b", 1, 1)];
        Catalogue::new(first).expect("a catalogue").nested(tables, leads)
    };
    let said =
        |tables: Vec<Table>, leads: &[Lead]| nested(tables, leads).expect_err("it is wrong").to_string();
    let t = || vec![table("t", one("x"))];
    assert_eq!(said(t(), &[]), "no item leads to the table \"t\": let one, or leave the table out");
    assert_eq!(
        said(t(), &[lead("a", "u")]),
        "the item \"a\" leads to the table \"u\", which is not there: name one of the tables"
    );
    assert_eq!(
        said(t(), &[lead("c", "t")]),
        "the item \"c\" is to lead to the table \"t\", and there is no such item: name one"
    );
    let alone = "leads to a table: it leads to one alone, and has no quantity of its own";
    assert_eq!(said(t(), &[lead("b", "t")]), format!("the item \"b\" {alone}"));
    let two = vec![table("t", one("x")), table("u", one("y"))];
    assert_eq!(said(two, &[lead("a", "t"), lead("a", "u")]), format!("the item \"a\" {alone}"));
    let twice = vec![table("t", one("x")), table("t", one("y"))];
    assert_eq!(said(twice, &[lead("a", "t")]), "two tables have the name \"t\": give each one of its own");
    assert_eq!(
        said(vec![table("", one("x"))], &[lead("a", "")]),
        "table 1 has the name \"\": a name has 1 to 255 bytes, and no control characters"
    );
    let weightless = vec![table("t", vec![Item::unlimited("x", 0)])];
    assert_eq!(
        said(weightless, &[lead("a", "t")]),
        "nothing in the table \"t\" has a weight: give it an item that has one"
    );
    assert!(
        said(vec![table("t", one("b"))], &[lead("a", "t")]).starts_with("item 3 has the id \"b\" of item 2")
    );
    let circle = vec![table("t", one("x")), table("u", one("y"))];
    assert_eq!(
        said(circle, &[lead("a", "t"), lead("x", "u"), lead("y", "t")]),
        "the table \"t\" leads to itself, or what leads to it does: a draw would find no end"
    );
    let deep = |tables: usize| {
        let name = |number: usize| format!("t{number}");
        let all = (0..tables).map(|number| table(&name(number), one(&format!("x{number}"))));
        let next = (1..tables).map(|number| lead(&format!("x{}", number - 1), &name(number)));
        let leads: Vec<Lead> = std::iter::once(lead("a", "t0")).chain(next).collect();
        // The item in the last table can be drawn.
        nested(all.collect(), &leads)
    };
    let mut deepest = pool(&deep(8).expect("eight are possible"));
    deepest.remove("b").expect("it is there");
    assert_eq!(deepest.draw().map(|draw| draw.item), Ok(Some(9)));
    assert_eq!(
        deep(9).expect_err("it is too deep").to_string(),
        "the table \"t8\" lies more than 8 tables deep: put some together"
    );
    let raffle = Catalogue::with(vec![Item::limited("a", 1, 1)], Mode::PerUnit, SoldOut::Renormalise);
    let raffle = raffle.expect("a catalogue").nested(t(), &[lead("a", "t")]);
    assert!(
        raffle
            .expect_err("it is wrong")
            .to_string()
            .starts_with("tables inside of tables go with fixed odds alone")
    );
    let falls_back = Catalogue::with(one("a"), Mode::FixedOdds, SoldOut::Fallback("a".into()));
    let falls_back = falls_back.expect("a catalogue").nested(t(), &[lead("a", "t")]);
    assert_eq!(
        falls_back.expect_err("it is wrong").to_string(),
        "\"a\" is given in place of what is sold out, and leads to a table: name an item that is one"
    );
}

#[test]
fn rules_name_items_of_tables_as_they_can_be_counted() {
    let wins_of = |id: &str| Limit { max: 1, per_ms: None, wins_of: Some(vec![id.into()]) };
    let guarantee = |of: &str| Guarantee { after: 1, of: vec![of.into()], scope: Scope::Pool, soft: None };
    let said = |sold_out: SoldOut, limits: &[Limit], guarantees: &[Guarantee]| {
        let rules = Rules::new(limits.to_vec(), guarantees.to_vec()).expect("they are sound");
        rarities(sold_out).ruled(rules).expect_err("it is wrong").to_string()
    };
    assert_eq!(
        said(SoldOut::Renormalise, &[wins_of("rare")], &[]),
        "limit 1 names \"rare\", which leads to a table: name the items of the table"
    );
    assert_eq!(
        said(SoldOut::Renormalise, &[], &[guarantee("rare"), guarantee("car")]),
        "guarantee 2 names \"car\", which is in another table than the first: name the item that leads there"
    );
    assert!(
        said(SoldOut::NoPrize, &[], &[guarantee("rare")])
            .starts_with("guarantee 1 names \"rare\", which leads")
    );
    // The same check applies to rules that were set before the tables.
    let rules = Rules::new(vec![wins_of("rare")], Vec::new()).expect("they are sound");
    let ruled = Catalogue::new(vec![Item::unlimited("rare", 1)]).expect("a catalogue");
    let ruled = ruled.ruled(rules).expect("it is there");
    let wheels = table("wheels", vec![Item::limited("car", 1, 1)]);
    let nested = ruled.nested(vec![wheels], &[lead("rare", "wheels")]);
    assert!(nested.expect_err("it is wrong").to_string().starts_with("limit 1 names \"rare\""));
}
