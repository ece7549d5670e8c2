//! Which items form a catalogue, and the errors for those that do not.

use tidemark_pool::{AMOUNT_MAX, Catalogue, Item, Mode, SoldOut};

/// Returns the error for these items.
fn refusal(items: Vec<Item>, mode: Mode, sold_out: SoldOut) -> String {
    Catalogue::with(items, mode, sold_out).expect_err("a refusal").to_string()
}

fn fixed(items: Vec<Item>) -> String {
    refusal(items, Mode::FixedOdds, SoldOut::Renormalise)
}

#[test]
fn a_catalogue_keeps_its_items_in_their_order() {
    let items = vec![Item::limited("b", 1, 1), Item::unlimited("a", 2), Item::limited("reserve", 0, 5)];
    let catalogue = Catalogue::new(items.clone()).expect("a catalogue");
    assert_eq!(catalogue.items(), items);
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    assert_eq!(fixed(vec![]), "the catalogue has no items: name at least one");
    assert_eq!(fixed(vec![Item::unlimited("", 1)]), "item 1 has an empty id: give it one");
    assert_eq!(
        fixed(vec![Item::unlimited("x".repeat(256), 1)]),
        "the id of item 1 has 256 bytes, at most 255 are possible: shorten it"
    );
    assert_eq!(
        fixed(vec![Item::unlimited("a\nb", 1)]),
        "the id of item 1, \"a\\nb\", has a control character: take it out"
    );
    assert_eq!(
        fixed(vec![Item::unlimited("a", 1), Item::unlimited("b", 1), Item::unlimited("a", 1)]),
        "item 3 has the id \"a\" of item 1: give each item an id of its own"
    );
    assert_eq!(
        fixed(vec![Item::limited("a", 1, AMOUNT_MAX + 1)]),
        "item 1, \"a\", has a quantity of 9223372036854775808, at most 9223372036854775807 is possible: lower it, or make it \
         unlimited"
    );
    assert_eq!(
        fixed(vec![Item::unlimited("a", 0)]),
        "all weights are 0, so nothing could be drawn: give at least one item a weight"
    );
    assert_eq!(
        refusal(vec![Item::unlimited("a", 1)], Mode::FixedOdds, SoldOut::Fallback("b".into())),
        "there is no item \"b\" to fall back to: name one of the catalogue"
    );
}

#[test]
fn weights_add_up_to_no_more_than_fits() {
    assert!(Catalogue::new(vec![Item::unlimited("a", AMOUNT_MAX)]).is_ok());
    let too_much = "with item 2, \"b\", the weights add up to more than 9223372036854775807: divide them all by the same number";
    assert_eq!(fixed(vec![Item::unlimited("a", AMOUNT_MAX), Item::unlimited("b", 1)]), too_much);
    assert_eq!(fixed(vec![Item::unlimited("a", 1), Item::unlimited("b", u64::MAX)]), too_much);
}

#[test]
fn in_a_raffle_each_unit_has_the_weight() {
    let raffle = |items| refusal(items, Mode::PerUnit, SoldOut::Renormalise);
    assert_eq!(
        raffle(vec![Item::limited("a", 1, 1), Item::limited("b", 1 << 40, 1 << 40)]),
        "with item 2, \"b\", the weights add up to more than 9223372036854775807: divide them all by the same number"
    );
    assert_eq!(
        raffle(vec![Item::unlimited("a", 1)]),
        "item 1, \"a\", is unlimited and has a weight, but in a raffle each unit counts: give it a quantity, or weight 0"
    );
    let consolation = vec![Item::limited("ticket", 1, 100), Item::unlimited("consolation", 0)];
    assert!(Catalogue::with(consolation, Mode::PerUnit, SoldOut::Fallback("consolation".into())).is_ok());
}
