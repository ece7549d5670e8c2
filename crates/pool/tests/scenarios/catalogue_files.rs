//! Catalogue files: how they are read, the errors of wrong ones, and that every catalogue survives
//! a round trip.

use proptest::prelude::*;
use std::fmt::Write;
use tidemark_pool::file::{
    CatalogueFile, FileFormat, NumberError, Origin, Position, Problem, TEXT_BYTES_MAX,
};
use tidemark_pool::{
    AMOUNT_MAX, Catalogue, CatalogueError, Guarantee, Item, Lead, Limit, Mode, Release, Rules, Schedule,
    Scope, Soft, SoldOut, Stock, Table, Unsold,
};

use FileFormat::{Json, Toml, Yaml};

fn parsed(text: &str, format: FileFormat) -> Catalogue {
    CatalogueFile::parse(text, format).unwrap_or_else(|error| panic!("{error}\n{text}")).catalogue
}

/// Returns the error for a text that is not a catalogue.
fn refusal(text: &str, format: FileFormat) -> String {
    match CatalogueFile::parse(text, format) {
        Ok(file) => panic!("{file:?}\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// Returns the error for these items, each a YAML flow map, starting in line 2.
fn refused_items(items: &[&str]) -> String {
    refusal(&format!("items:\n- {}\n", items.join("\n- ")), Yaml)
}

fn weights(catalogue: &Catalogue) -> Vec<u64> {
    catalogue.items().iter().map(|item| item.weight).collect()
}

/// Returns the weights of a file that spells them like this.
fn weights_of(spelled: &[&str], format: FileFormat) -> Vec<u64> {
    let item = |(number, weight): (usize, &&str)| match format {
        Json => format!(r#"{{"id": "{number}", "weight": {weight}, "quantity": 1}}"#),
        Yaml => format!(r#"{{id: "{number}", weight: {weight}, quantity: 1}}"#),
        Toml => format!(r#"{{id = "{number}", weight = {weight}, quantity = 1}}"#),
    };
    let items = spelled.iter().enumerate().map(item).collect::<Vec<_>>().join(", ");
    let text = match format {
        Json => format!(r#"{{"items": [{items}]}}"#),
        Yaml => format!("items: [{items}]"),
        Toml => format!("items = [{items}]"),
    };
    weights(&parsed(&text, format))
}

#[test]
fn what_is_not_said_has_a_default() {
    let catalogue = parsed("items:\n- {id: car, weight: 1, quantity: 3}\n", Yaml);
    assert_eq!(catalogue, Catalogue::new(vec![Item::limited("car", 1, 3)]).expect("a catalogue"));
    assert_eq!(catalogue.mode(), Mode::FixedOdds);
    assert_eq!(*catalogue.sold_out(), SoldOut::Renormalise);
}

#[test]
fn limits_and_guarantees_are_the_same_in_all_formats() {
    let yaml = "limits:\n- {draws: 3, per: 86400000}\n- wins: 1\n  of: [car, \"7\"]\nguarantees:\n\
                - {after: 89, of: [car], soft_from: 74, soft_step: 6}\n- {after: 9, of: [\"7\"], scope: pool}\n\
                items:\n- {id: car, weight: 1, quantity: 3}\n- {id: \"7\", weight: 9, quantity: 3}\n";
    let toml = "limits = [{draws = 3, per = 86400000}, {wins = 1, of = [\"car\", \"7\"]}]\n[[guarantees]]\nafter = 89\n\
                of = [\"car\"]\nsoft_from = 74\nsoft_step = 6\n[[guarantees]]\nafter = 9\nof = [\"7\"]\nscope = \"pool\"\n\
                [[items]]\nid = \"car\"\nweight = 1\nquantity = 3\n[[items]]\nid = \"7\"\nweight = 9\nquantity = 3\n";
    let json = r#"{"limits": [{"per": 86400000, "draws": 3}, {"of": ["car", "7"], "wins": 1}],
                   "guarantees": [{"after": 89, "of": ["car"], "soft_from": 74, "soft_step": 6},
                                  {"after": 9, "of": ["7"], "scope": "pool"}],
                   "items": [{"id": "car", "weight": 1, "quantity": 3}, {"id": "7", "weight": 9, "quantity": 3}]}"#;
    let limits = vec![
        Limit { max: 3, per_ms: Some(86_400_000), wins_of: None },
        Limit { max: 1, per_ms: None, wins_of: Some(vec!["car".into(), "7".into()]) },
    ];
    let soft = Some(Soft { from: 74, step: 6 });
    let guarantees = vec![
        Guarantee { after: 89, of: vec!["car".into()], scope: Scope::User, soft },
        Guarantee { after: 9, of: vec!["7".into()], scope: Scope::Pool, soft: None },
    ];
    let rules = Rules::new(limits, guarantees).expect("they are sound");
    for (text, format) in [(yaml, Yaml), (toml, Toml), (json, Json)] {
        assert_eq!(*parsed(text, format).rules(), rules);
    }
}

#[test]
fn rules_that_cannot_hold_are_answered_with_their_place() {
    let rule =
        |rule: &str| refusal(&format!("{rule}\nitems:\n- {{id: car, weight: 1, quantity: 3}}\n"), Yaml);
    for (text, said) in [
        (
            "limits: [{per: 5}]",
            "line 1, column 10: there is no \"draws\": say how often a user may draw, or write \"wins\" and \"of\"",
        ),
        (
            "limits: [{wins: 1}]",
            "line 1, column 10: there is no \"of\": name the items whose wins are counted",
        ),
        (
            "limits: [{of: [car]}]",
            "line 1, column 10: there is no \"wins\": say how often a user may win these",
        ),
        (
            "limits: [{draws: 1, of: [car]}]",
            "line 1, column 10: a limit of \"draws\" has neither \"wins\" nor \"of\": write a second limit for those",
        ),
        (
            "limits: [{draws: 1}, {draws: 0}]",
            "line 1, column 22: limit 2: its number is 0, and must be 1 to 9223372036854775807",
        ),
        (
            "limits: [{draws: 1.5}]",
            "line 1, column 18: the draws 1.5 is not a whole number: write one from 0 to 9223372036854775807",
        ),
        (
            "limits: [{draws: 1, per: day}]",
            "line 1, column 26: a window must be a whole number of milliseconds, but is the text \"day\"",
        ),
        ("limits: [{draw: 1}]", "line 1, column 11: the key \"draw\" is not known: did you mean \"draws\"?"),
        (
            "limits: [{wins: 1, of: [bus]}]",
            "line 1, column 10: limit 1 names the item \"bus\", which is not there: name items of the catalogue",
        ),
        (
            "limits: [{wins: 1, of: [car, car]}]",
            "line 1, column 10: limit 1 names an item twice: name each once",
        ),
        (
            "limits: [{wins: 1, of: []}]",
            "line 1, column 10: limit 1: its number of items is 0, and must be 1 to 1024",
        ),
        (
            "limits: [{wins: 1, of: [7]}]",
            "line 1, column 25: \"of\" must be a list of ids: texts, in quotes if they look like something else, but is the number 7",
        ),
        (
            "limits: 3",
            "line 1, column 9: \"limits\" must be a list of maps with \"draws\", or with \"wins\" and \"of\", but is the number 3",
        ),
        (
            "guarantees: [{of: [car]}]",
            "line 1, column 14: there is no \"after\": say after how many draws without any of these",
        ),
        (
            "guarantees: [{after: 5, of: [car], soft_from: 9, soft_step: 1}]",
            "line 1, column 14: guarantee 1: the draw from which its odds grow is 9, and must be 1 to 5",
        ),
        (
            "guarantees: [{after: 5, of: [car], soft_from: 3}]",
            "line 1, column 14: there is no \"soft_step\": say by how much the weights' factor grows with each draw",
        ),
        (
            "guarantees: [{after: 5, of: [car], scope: usr}]",
            "line 1, column 43: the scope \"usr\" is not known: did you mean \"user\"?",
        ),
    ] {
        assert_eq!(rule(text), said, "{text}");
    }
}

#[test]
fn a_schedule_is_the_same_in_all_formats() {
    let yaml = "schedule:\n- {item: car, units: 3, from: 2026-12-24T18:00:00+01:00}\n\
                - {item: car, units: 70, from: 1798131600000, every: 86400000, times: 7, unsold: lapses}\n\
                items: [{id: car, weight: 1, quantity: 0}]\n";
    let toml = "schedule = [{item = \"car\", units = 3, from = 2026-12-24T18:00:00+01:00}, \
                {item = \"car\", units = 70, from = \"2026-12-24T17:00:00Z\", every = 86400000, times = 7, unsold = \"lapses\"}]\n\
                [[items]]\nid = \"car\"\nweight = 1\nquantity = 0\n";
    let json = r#"{"items": [{"id": "car", "weight": 1, "quantity": 0}], "schedule": [
                   {"item": "car", "units": 3, "from": "2026-12-24t18:00:00.000+01:00", "unsold": "stays"},
                   {"item": "car", "units": 70, "from": 1798131600000, "every": 86400000, "times": 7, "unsold": "lapses"}]}"#;
    let (item, from_ms) = (Box::<str>::from("car"), 1_798_131_600_000);
    let at_once = Release { item, units: 3, from_ms, every_ms: 1, times: 1, unsold: Unsold::Stays };
    let daily =
        Release { units: 70, every_ms: 86_400_000, times: 7, unsold: Unsold::Lapses, ..at_once.clone() };
    for (text, format) in [(yaml, Yaml), (toml, Toml), (json, Json)] {
        assert_eq!(parsed(text, format).schedule().releases(), [at_once.clone(), daily.clone()]);
    }
}

#[test]
fn a_schedule_that_cannot_be_kept_is_answered_with_its_place() {
    let said = |release: &str| {
        let items =
            "items:\n- {id: car, weight: 1, quantity: 3}\n- {id: mug, weight: 1, quantity: unlimited}\n";
        refusal(&format!("schedule: [{release}]\n{items}"), Yaml)
    };
    for (release, message) in [
        ("{units: 1, from: 1}", "line 1, column 12: there is no \"item\": say whose units come"),
        (
            "{item: car, from: 1}",
            "line 1, column 12: there is no \"units\": say how many come in all windows together",
        ),
        ("{item: car, units: 1}", "line 1, column 12: there is no \"from\": say when the first of them come"),
        (
            "{item: car, units: 1, from: 1, times: 3}",
            "line 1, column 12: there is no \"every\": say how many milliseconds a window has",
        ),
        (
            "{item: car, units: 1, from: 1, unsold: lapses}",
            "line 1, column 12: there is no \"every\": say how many milliseconds a window has",
        ),
        (
            "{item: car, units: 1, from: tomorrow}",
            "line 1, column 40: the beginning of a release must be a moment such as \"2026-12-24T18:00:00+01:00\", or \
             milliseconds since 1970, but is the text \"tomorrow\"",
        ),
        (
            "{item: car, units: 1, from: 1, unsold: laps}",
            "line 1, column 51: what becomes of what is unsold, \"laps\" is not known: did you mean \"lapses\"?",
        ),
        ("{item: car, unit: 1}", "line 1, column 24: the key \"unit\" is not known: did you mean \"units\"?"),
        (
            "{item: car, units: 1, from: 1}, {item: mug, units: 1, from: 1}",
            "line 1, column 44: release 2 is of the item \"mug\", which is unlimited: give it a quantity, which may be 0",
        ),
        (
            "{item: car, units: 1, from: 0}",
            "line 1, column 12: release 1: its beginning in milliseconds since 1970 is 0, and must be 1 to 253402300799999",
        ),
        (
            "car",
            "line 1, column 12: \"schedule\" must be a list of maps with \"item\", \"units\" and \"from\", but is the text \"car\"",
        ),
    ] {
        assert_eq!(said(release), message, "{release}");
    }
}

#[test]
fn tables_are_the_same_in_all_formats() {
    let yaml = "items:\n- {id: mug, weight: 0.9, quantity: 5}\n- {id: rare, weight: 0.1, table: wheels}\ntables:\n- name: wheels\n  items:\n\
                - {id: car, weight: 12.5%, quantity: 1}\n  - {id: bicycle, weight: 87.5%, quantity: 7}\n".replace("\n- {id: car", "\n  - {id: car");
    let toml = "[[tables]]\nname = \"wheels\"\n[[tables.items]]\nid = \"car\"\nweight = \"12.5%\"\nquantity = 1\n\
                [[tables.items]]\nid = \"bicycle\"\nweight = \"87.5%\"\nquantity = 7\n\
                [[items]]\nid = \"mug\"\nweight = 0.9\nquantity = 5\n[[items]]\nid = \"rare\"\nweight = 0.1\ntable = \"wheels\"\n";
    let json = r#"{"tables": [{"items": [{"id": "car", "weight": "12.5%", "quantity": 1}, {"id": "bicycle", "weight": "87.5%", "quantity": 7}],
                               "name": "wheels"}],
                   "items": [{"id": "mug", "weight": 0.9, "quantity": 5}, {"table": "wheels", "id": "rare", "weight": 0.1}]}"#;
    let first = vec![Item::limited("mug", 9, 5), Item::unlimited("rare", 1)];
    let wheels = vec![Item::limited("car", 125, 1), Item::limited("bicycle", 875, 7)];
    let expected = Catalogue::new(first).expect("a catalogue");
    let table = Table { name: "wheels".into(), items: wheels };
    let expected = expected
        .nested(vec![table], &[Lead { item: "rare".into(), table: "wheels".into() }])
        .expect("they fit");
    for (text, format) in [(&*yaml, Yaml), (toml, Toml), (json, Json)] {
        assert_eq!(parsed(text, format), expected);
    }
}

#[test]
fn tables_that_do_not_fit_together_are_answered() {
    let said = |item: &str, tables: &str| {
        refusal(&format!("items: [{{id: a, weight: 1, {item}}}]\ntables: {tables}\n"), Yaml)
    };
    let x = "{id: x, weight: 1, quantity: 1}";
    for (item, tables, message) in [
        (
            "table: t",
            &*format!("[{{items: [{x}]}}]"),
            "line 2, column 10: there is no \"name\": give the table one of its own",
        ),
        (
            "table: t",
            "[{name: t}]",
            "line 2, column 10: there is no \"items\": list the items of the table under it",
        ),
        (
            "table: t",
            "3",
            "line 2, column 9: \"tables\" must be a list of maps with \"name\" and \"items\", but is the number 3",
        ),
        (
            "quantity: 1, table: t",
            &format!("[{{name: t, items: [{x}]}}]"),
            "line 1, column 9: item 1 (\"a\"): an item that leads to a \"table\" has no \"quantity\": take one of them out",
        ),
        (
            "table: t",
            "[{name: t, items: [{id: x, wieght: 1}]}]",
            "line 2, column 36: item 1 (\"x\"): the key \"wieght\" is not known: did you mean \"weight\"?",
        ),
        (
            "table: t",
            "[{name: t, items: [{id: x, weight: 60%, quantity: 1}]}]",
            "the weights in per cent add up to 60 %, not 100 %: correct them, or write them as numbers",
        ),
        (
            "table: t",
            "[{name: t, items: [{id: a, weight: 1, quantity: 1}]}]",
            "line 2, column 28: item 2 has the id \"a\" of item 1: give each item an id of its own",
        ),
        (
            "table: u",
            &format!("[{{name: t, items: [{x}]}}]"),
            "the item \"a\" leads to the table \"u\", which is not there: name one of the tables",
        ),
        (
            "table: 3",
            "[]",
            "line 1, column 35: item 1 (\"a\"): the name of a table must be text of at most 255 bytes, in quotes if it looks like something else, but is the number 3",
        ),
    ] {
        assert_eq!(said(item, tables), message, "{item} {tables}");
    }
}

#[test]
fn modes_and_rules_are_words() {
    let rest = r#""items": [{"id": "a", "weight": 1, "quantity": 3}]"#;
    let with = |keys: &str| parsed(&format!("{{{keys}, {rest}}}"), Json);
    assert_eq!(with(r#""mode": "per-unit""#).mode(), Mode::PerUnit);
    assert_eq!(*with(r#""sold_out": "no-prize""#).sold_out(), SoldOut::NoPrize);
    assert_eq!(*with(r#""sold_out": {"fallback": "a"}"#).sold_out(), SoldOut::Fallback("a".into()));
    let toml = "sold_out.fallback = \"a\"\n[[items]]\nid = \"a\"\nweight = 1\nquantity = 3\n";
    assert_eq!(*parsed(toml, Toml).sold_out(), SoldOut::Fallback("a".into()));
}

#[test]
fn an_item_without_end_is_unlimited_and_only_in_the_originals_files_there_are_minus_one_of_it() {
    let text = "items:\n- {id: a, weight: 1, quantity: unlimited}\n";
    assert_eq!(parsed(text, Yaml).items()[0].stock, Stock::Unlimited);
    let text = "pool:\n  catalog:\n  - {item_id: a, probability: 1, quantity: -1}\n";
    assert_eq!(parsed(text, Yaml).items()[0].stock, Stock::Unlimited);
    let text = "items:\n- {id: a, weight: 1, quantity: -1}\n";
    let refused = CatalogueFile::parse(text, Yaml).expect_err("one too few").to_string();
    assert!(refused.contains("-1"), "{refused}");
}

#[test]
fn decimals_are_exact_in_every_format() {
    for format in FileFormat::ALL {
        assert_eq!(weights_of(&["0.1", "0.2"], format), [1, 2], "{format}");
        assert_eq!(weights_of(&["0.1", "0.2", "0.3", "0.4"], format), [1, 2, 3, 4], "{format}");
        assert_eq!(weights_of(&["1e-3", "1.5E2"], format), [1, 150_000], "{format}");
        assert_eq!(weights_of(&["0.50", "12.25", "0"], format), [50, 1225, 0], "{format}");
        // Neighbours that are equal as 64-bit floating-point numbers.
        assert_eq!(
            weights_of(&["0.1000000000000000055", "0.1000000000000000056"], format),
            [1_000_000_000_000_000_055, 1_000_000_000_000_000_056],
            "{format}"
        );
        assert_eq!(weights_of(&["9007199254740993", "1"], format), [9_007_199_254_740_993, 1], "{format}");
        assert_eq!(weights_of(&["\"0.5\"", "2"], format), [5, 20], "{format}");
        assert_eq!(weights_of(&["\"12.5%\"", "\"87.5 %\""], format), [125, 875], "{format}");
    }
    assert_eq!(weights_of(&["12.5%", "87.5 %"], Yaml), [125, 875]);
    assert_eq!(weights_of(&["1_000.5", "1"], Toml), [10_005, 10]);
}

#[test]
fn whole_numbers_stay_as_they_are() {
    for format in FileFormat::ALL {
        assert_eq!(weights_of(&["100", "2000"], format), [100, 2000], "{format}");
        let largest = AMOUNT_MAX.to_string();
        assert_eq!(weights_of(&[&largest], format), [AMOUNT_MAX], "{format}");
    }
}

/// The values of the original's sample configuration.
const ORIGINAL_YAML: &str = r#"
working_dir: "tmp/working_dir"
pool:
  catalog:
    - { item_id: "diamond", quantity: 100, probability: 10 }
    - { item_id: "gold", quantity: 100, probability: 20 }
    - { item_id: "silver", quantity: 100, probability: 30 }
    - { item_id: "rock", quantity: 100, probability: 40 }
wal:
  max_file_size_kb: 1024
  max_request_buffer_size: 512
  formatter: "json"
  flush_after_n_draw: 20
grpc:
  enabled: true
  listen_address: ":50051"
"#;

#[test]
fn the_originals_configuration_is_recognised() {
    let file = CatalogueFile::parse(ORIGINAL_YAML, Yaml).expect("a catalogue");
    let items = [("diamond", 10), ("gold", 20), ("silver", 30), ("rock", 40)];
    let items = items.map(|(id, weight)| Item::limited(id, weight, 100));
    assert_eq!(file.catalogue, Catalogue::new(items.to_vec()).expect("a catalogue"));
    assert_eq!(file.origin, Origin::Original);
    let unused: Vec<String> = file.unused.iter().map(ToString::to_string).collect();
    assert_eq!(
        unused,
        [
            "line 2, column 14: working_dir is not used here",
            "line 10, column 21: wal.max_file_size_kb is not used here",
            "line 11, column 28: wal.max_request_buffer_size is not used here",
            "line 12, column 14: wal.formatter is not used here",
            "line 13, column 23: wal.flush_after_n_draw is not used here",
            "line 15, column 12: grpc.enabled is not used here",
            "line 16, column 19: grpc.listen_address is not used here",
        ]
    );
}

#[test]
fn the_originals_older_configuration_is_recognised() {
    let text = r#"{"catalog": [
        {"item_id": "gold", "quantity": 100, "probability": 0.5},
        {"item_id": "silver", "quantity": 200, "probability": 0.3},
        {"item_id": "bronze", "quantity": -1, "probability": 0.2}
    ]}"#;
    let file = CatalogueFile::parse(text, Json).expect("a catalogue");
    let items =
        vec![Item::limited("gold", 5, 100), Item::limited("silver", 3, 200), Item::unlimited("bronze", 2)];
    assert_eq!(file.catalogue, Catalogue::new(items).expect("a catalogue"));
    assert_eq!((file.origin, file.unused), (Origin::Original, vec![]));
}

#[test]
fn a_file_is_of_one_origin() {
    assert_eq!(
        refusal("mode: per-unit\ncatalog: []\n", Yaml),
        "line 2, column 1: the key \"catalog\" does not go together with \"mode\": write a catalogue with \"items\", or a \
         configuration of the original with \"catalog\""
    );
    assert_eq!(
        refusal("catalog: []\npool:\n  catalog: []\n", Yaml),
        "line 3, column 12: the key \"catalog\" is here for a second time: write it once"
    );
    assert_eq!(refusal("pool: {}\n", Yaml), "there is no \"catalog\": list the items under it");
    assert_eq!(
        refusal("catalog:\n- {item_id: a, quantity: 1, weight: 1}\n", Yaml),
        "line 2, column 29: item 1 (\"a\"): the key \"weight\" is not known: possible is \"item_id\", \"quantity\" or \"probability\""
    );
}

#[test]
fn unknown_keys_are_answered_with_what_may_be_meant() {
    assert_eq!(
        refusal("{\n  \"item\": []\n}", Json),
        "line 2, column 3: the key \"item\" is not known: did you mean \"items\"?"
    );
    assert_eq!(
        refusal("colour = 1\n", Toml),
        "line 1, column 1: the key \"colour\" is not known: possible is \"mode\", \"sold_out\", \"limits\", \"guarantees\", \"schedule\", \"items\" or \"tables\""
    );
    assert_eq!(
        refused_items(&["{id: a, weight: 1, quantity: 1}", "{id: b, probability: 1}"]),
        "line 3, column 11: item 2 (\"b\"): the key \"probability\" is not known: did you mean \"weight\"?"
    );
    assert_eq!(
        refusal("mode: raffle\n", Yaml),
        "line 1, column 7: the mode \"raffle\" is not known: did you mean \"per-unit\"?"
    );
    assert_eq!(
        refusal("sold_out = \"x\"\n", Toml),
        "line 1, column 12: the rule for what is sold out \"x\" is not known: possible is \"renormalise\", \"no-prize\" or \
         \"fallback: ID\""
    );
}

#[test]
fn keys_stand_once() {
    assert_eq!(
        refusal(r#"{"mode": "per-unit", "mode": "per-unit"}"#, Json),
        "line 1, column 22: the key \"mode\" is here for a second time: write it once"
    );
    assert_eq!(
        refused_items(&["{id: a, weight: 1, weight: 2}"]),
        "line 2, column 22: item 1 (\"a\"): the key \"weight\" is here for a second time: write it once"
    );
    assert!(
        refusal("mode = \"per-unit\"\nmode = \"per-unit\"\n", Toml)
            .starts_with("line 2, column 1: this is not TOML: ")
    );
}

#[test]
fn nothing_of_an_item_may_be_missing() {
    assert_eq!(
        refused_items(&["{weight: 1, quantity: 1}"]),
        "line 2, column 3: item 1: there is no \"id\": give the item one of its own"
    );
    assert_eq!(
        refused_items(&["{id: a, quantity: 1}"]),
        "line 2, column 3: item 1 (\"a\"): there is no \"weight\": say how likely the item is, 0 if only a rule is to give it"
    );
    assert_eq!(
        refused_items(&["{id: a, weight: 1}"]),
        "line 2, column 3: item 1 (\"a\"): there is no \"quantity\": say how many there are, or \"unlimited\""
    );
    for (text, format) in [("", Yaml), ("{}", Json), ("", Toml), ("mode: per-unit", Yaml)] {
        assert_eq!(refusal(text, format), "there is no \"items\": list the items under it");
    }
    assert_eq!(refusal("items: []", Yaml), "the catalogue has no items: name at least one");
    assert_eq!(
        refusal("sold_out: {}", Yaml),
        "line 1, column 11: there is no \"fallback\": name the item to fall back to"
    );
}

#[test]
fn values_are_of_the_kind_that_their_key_takes() {
    assert_eq!(
        refused_items(&["{id: 100, weight: 1, quantity: 1}"]),
        "line 2, column 8: item 1: an id must be text, in quotes if it looks like something else, but is the number 100"
    );
    assert_eq!(
        refused_items(&["{id: a, weight: [1], quantity: 1}"]),
        "line 2, column 19: item 1 (\"a\"): a weight must be a number such as 10 or 0.5, or a text such as \"12.5%\", but is a list"
    );
    assert_eq!(
        refused_items(&["{id: a, weight: 1, quantity: \"1\"}"]),
        "line 2, column 32: item 1 (\"a\"): a quantity must be a whole number, or the text \"unlimited\", but is the text \"1\""
    );
    assert_eq!(
        refused_items(&["{id: a, weight: 1, quantity: 1}", "[a, 1, 1]"]),
        "line 3, column 3: item 2: an item must be a map with an id, a weight and a quantity, but is a list"
    );
    assert_eq!(
        refusal("[1, 2]", Json),
        "line 1, column 1: a catalogue must be a map with \"items\", but is a list"
    );
    assert_eq!(
        refusal("items = 2020-02-20\n", Toml),
        "line 1, column 9: \"items\" must be a list of items, but is the moment 2020-02-20"
    );
    assert_eq!(
        refusal("mode: ~\n", Yaml),
        "line 1, column 7: the mode must be the text \"fixed-odds\" or \"per-unit\", but is nothing"
    );
    assert_eq!(refusal("? [a]\n: 1\n", Yaml), "line 1, column 3: a key must be text, but is a map or a list");
}

#[test]
fn numbers_that_cannot_be_are_said_to_be_so() {
    let of_weight = |weight: &str| refused_items(&[&format!("{{id: a, weight: {weight}, quantity: 1}}")]);
    let said = |what: &str| format!("line 2, column 19: item 1 (\"a\"): the weight {what}");
    assert_eq!(of_weight("-5"), said("-5 is negative: write 0 or more"));
    assert_eq!(of_weight(".inf"), said(".inf is not finite: write a decimal number"));
    assert_eq!(of_weight(".nan"), said(".nan is not finite: write a decimal number"));
    assert_eq!(of_weight("0x10"), said("0x10 is not a decimal number: write it like 10, 0.5 or 1e-3"));
    assert_eq!(of_weight("\"1,5\""), said("1,5 is not a decimal number: write it like 10, 0.5 or 1e-3"));
    assert_eq!(
        of_weight("1.00000000000000000001"),
        said("1.00000000000000000001 has 21 digits, of which at most 19 can be kept apart: use fewer")
    );
    assert_eq!(
        of_weight("1e99999"),
        said("1e99999 is too large or too small by far: use a number closer to 1")
    );

    let of_quantity =
        |quantity: &str| refused_items(&[&format!("{{id: a, weight: 1, quantity: {quantity}}}")]);
    let said = |what: &str| format!("line 2, column 32: item 1 (\"a\"): the quantity {what}");
    assert_eq!(of_quantity("-2"), said("-2 is negative: write 0 or more"));
    assert_eq!(
        of_quantity("1.5"),
        said("1.5 is not a whole number: write one from 0 to 9223372036854775807")
    );
    assert_eq!(
        of_quantity("9223372036854775808"),
        said("9223372036854775808 is too large: at most 9223372036854775807 is possible")
    );
    assert!(
        refusal("items = [{id = \"a\", weight = nan, quantity = 1}]", Toml)
            .ends_with("item 1 (\"a\"): the weight nan is not finite: write a decimal number")
    );
}

#[test]
fn too_many_digits_behind_the_point_are_said_to_be_too_many() {
    assert_eq!(
        refused_items(&["{id: a, weight: 1e15, quantity: 1}", "{id: b, weight: 0.00001, quantity: 1}"]),
        "line 3, column 3: item 2 (\"b\"): the weight 0.00001 has 5 digits behind the point; made whole numbers by 10 to the power of 5, the \
         weights add up to more than 9223372036854775807 at item 1: use fewer digits"
    );
    // Each weight fits; their sum does not.
    let both = ["{id: a, weight: 5e16, quantity: 1}", "{id: b, weight: 5e16, quantity: 1}"];
    assert_eq!(
        refused_items(&[both[0], both[1], "{id: c, weight: 0.01, quantity: 1}"]),
        "line 4, column 3: item 3 (\"c\"): the weight 0.01 has 2 digits behind the point; made whole numbers by 10 to the power of 2, the \
         weights add up to more than 9223372036854775807 at item 2: use fewer digits"
    );
    assert_eq!(
        refused_items(&["{id: a, weight: 1e30, quantity: 1}"]),
        "line 2, column 3: item 1 (\"a\"): the weight 1e30 is too large: at most 9223372036854775807 is possible"
    );
}

#[test]
fn percentages_are_odds() {
    let with = |mode: &str, weights: &[&str]| {
        let items: Vec<String> = weights
            .iter()
            .map(|weight| format!("{{id: \"{weight}\", weight: {weight}, quantity: 1}}"))
            .collect();
        refusal(&format!("mode: {mode}\nitems:\n- {}\n", items.join("\n- ")), Yaml)
    };
    assert_eq!(
        with("fixed-odds", &["33.3%", "33.30%", "33.300%"]),
        "the weights in per cent add up to 99.9 %, not 100 %: correct them, or write them as numbers"
    );
    assert_eq!(
        with("fixed-odds", &["50%", "50"]),
        "line 4, column 3: item 2 (\"50\"): some weights are in per cent and some are not: write all of them in one way"
    );
    assert_eq!(
        with("per-unit", &["50%", "50.0%"]),
        "line 3, column 3: item 1 (\"50%\"): a weight in per cent is the odds of an item, but by \"per-unit\" a weight counts for each unit: \
         write numbers"
    );
    assert_eq!(
        with("fixed-odds", &["1e-9000%", "100%"]),
        "line 3, column 3: item 1 (\"1e-9000%\"): the weight 1e-9000% has 9000 digits behind the point; made whole numbers by 10 to the power of \
         9000, the weights add up to more than 9223372036854775807 at item 2: use fewer digits"
    );
}

#[test]
fn what_is_wrong_with_the_catalogue_is_found_in_the_text() {
    let error = CatalogueFile::parse(
        "[[items]]\nid = \"a\"\nweight = 1\nquantity = 1\n\n[[items]]\nid = \"a\"\nweight = 1\nquantity = 1\n",
        Toml,
    )
    .expect_err("two of one id");
    assert_eq!(error.position(), Some(Position { line: 6, column: 1 }));
    assert!(matches!(
        error.problem(),
        Problem::Catalogue(CatalogueError::DuplicateId { number: 2, first: 1, .. })
    ));
    assert_eq!(
        error.to_string(),
        "line 6, column 1: item 2 has the id \"a\" of item 1: give each item an id of its own"
    );
    assert_eq!(
        refusal("sold_out: {fallback: b}\nitems:\n- {id: a, weight: 1, quantity: 1}\n", Yaml),
        "there is no item \"b\" to fall back to: name one of the catalogue"
    );
}

#[test]
fn errors_say_where_what_and_of_which_item() {
    let error =
        CatalogueFile::parse(r#"{"items": [{"id": "a", "weight": -1}]}"#, Json).expect_err("negative");
    assert_eq!(error.position(), Some(Position { line: 1, column: 34 }));
    assert_eq!(error.item(), Some(1));
    assert!(matches!(error.problem(), Problem::Number { key: "weight", error: NumberError::Negative, .. }));
}

#[test]
fn text_that_is_not_in_its_format_is_refused_with_the_place() {
    assert_eq!(
        refusal("{\n  \"items\": [,]\n}", Json),
        "line 2, column 13: this is not JSON: expected value"
    );
    assert_eq!(
        refusal("{\"mode\": \"per-unit\"}\n}", Json),
        "line 2, column 1: this is not JSON: trailing characters"
    );
    assert!(refusal("{\"mode\": \"\\ud800\"}", Json).starts_with("line 1, column 10: this is not JSON: "));
    assert!(refusal("items: [{id: a\n", Yaml).contains("this is not YAML: "));
    assert!(refusal("mode = per-unit\n", Toml).starts_with("line 1, column 8: this is not TOML: "));
}

#[test]
fn yaml_says_no_more_than_its_text_holds() {
    let mut bomb = String::from("a0: &a0 [x, x]\n");
    for level in 1..60 {
        writeln!(bomb, "a{level}: &a{level} [*a{0}, *a{0}]", level - 1).expect("a string takes everything");
    }
    assert!(CatalogueFile::parse(&bomb, Yaml).is_err());
    assert_eq!(
        refusal("items:\n- &a {id: a, weight: 1, quantity: 1}\n- *a\n", Yaml),
        "line 3, column 3: aliases are not read here: write the value itself"
    );
    assert_eq!(
        refusal("mode: !secret per-unit\n", Yaml),
        "line 1, column 7: the tag !secret has no meaning here: take it out"
    );
    let item = "items:\n- {id: !!str 100, weight: 1, quantity: 1}\n";
    assert_eq!(&*parsed(item, Yaml).items()[0].id, "100");
    assert_eq!(
        refusal(&format!("{item}---\n{item}"), Yaml),
        "line 3, column 1: a catalogue is one document, and here begins a second: put it into a file of its own"
    );
}

#[test]
fn nesting_is_refused_whatever_its_depth() {
    for depth in [2, 50, 100, 100_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("{\"items\":[", "]}")] {
            let text = format!("{}{}", open.repeat(depth), close.repeat(depth));
            assert!(CatalogueFile::parse(&text, Json).is_err());
            assert!(CatalogueFile::parse(&text, Yaml).is_err());
            assert!(CatalogueFile::parse(&format!("items = {text}"), Toml).is_err());
        }
        assert!(CatalogueFile::parse(&"- ".repeat(depth), Yaml).is_err());
        assert!(CatalogueFile::parse(&"? ".repeat(depth), Yaml).is_err());
        assert!(CatalogueFile::parse(&format!("{} = 1", vec!["a"; depth].join(".")), Toml).is_err());
    }
}

#[test]
fn a_text_has_a_greatest_length() {
    let text = "items: [{id: a, weight: 1, quantity: 1}]";
    assert!(CatalogueFile::parse_up_to(text, Yaml, text.len()).is_ok());
    assert_eq!(
        CatalogueFile::parse_up_to(text, Yaml, 10).expect_err("too long").to_string(),
        "the text has 40 bytes, at most 10 are read: leave out what is not needed, or allow more"
    );
    assert_eq!(TEXT_BYTES_MAX, 268_435_456);
}

#[test]
fn messages_stay_short() {
    let long = "x".repeat(100_000);
    for text in [
        format!("{long}: 1"),
        format!("mode: {long}"),
        format!("items: [{{id: {long}, weights: 1}}]"),
        format!("items: [{{id: a, weight: {long}}}]"),
        format!("items: [{{id: a, weight: {}}}]", "1".repeat(100_000)),
        format!("sold_out: {{fallback: {long}}}"),
        format!("mode: !{long} a"),
    ] {
        assert!(refusal(&text, Yaml).len() < 500, "{}", refusal(&text, Yaml));
    }
}

#[test]
fn a_mark_of_the_encoding_is_skipped() {
    for (text, format) in [
        ("\u{feff}{\"items\": [{\"id\": \"a\", \"weight\": 1, \"quantity\": 1}]}", Json),
        ("\u{feff}items: [{id: a, weight: 1, quantity: 1}]", Yaml),
        ("\u{feff}items = [{id = \"a\", weight = 1, quantity = 1}]\r\n", Toml),
    ] {
        assert_eq!(weights(&parsed(text, format)), [1]);
    }
}

fn any_id() -> impl Strategy<Value = String> {
    let strange = "[\"\\\\#:&*!|>%@`'{}\\[\\],? -~\u{2028}\u{2029}\u{feff}\u{fffe}\u{ffff}\u{10ffff}é]{1,20}";
    let words = prop::sample::select(vec![
        "null", "~", "true", "no", "1", "-1", "1e3", "0x1", ".nan", "---", "<<", " a ",
    ]);
    prop_oneof!["[a-z]{1,8}", "\\PC{1,40}", strange, words.prop_map(str::to_owned)]
        .prop_filter("ids have no controls and fit", |id| {
            id.len() <= 255 && !id.chars().any(char::is_control)
        })
}

fn any_catalogue() -> impl Strategy<Value = Catalogue> {
    let stock = prop_oneof![Just(Stock::Unlimited), (0..=AMOUNT_MAX).prop_map(Stock::Limited)];
    let item = (any_id(), 0..=AMOUNT_MAX / 32, stock);
    let rule = (any::<bool>(), 0_u8..3, any::<prop::sample::Index>());
    (prop::collection::vec(item, 1..16), rule).prop_filter_map(
        "a catalogue",
        |(items, (per_unit, rule, which))| {
            let mode = if per_unit { Mode::PerUnit } else { Mode::FixedOdds };
            let items: Vec<Item> = items
                .into_iter()
                .map(|(id, weight, stock)| match (mode, stock) {
                    (Mode::PerUnit, Stock::Limited(quantity)) => {
                        Item::limited(id, weight >> 32, quantity >> 40)
                    }
                    (Mode::PerUnit, Stock::Unlimited) => Item::unlimited(id, 0),
                    (Mode::FixedOdds, stock) => Item { id: id.into(), weight, stock },
                })
                .collect();
            let fallback = items[which.index(items.len())].id.clone();
            let sold_out =
                [SoldOut::Renormalise, SoldOut::NoPrize, SoldOut::Fallback(fallback)][rule as usize].clone();
            let (rules, schedule) = (some_rules(&items, which), some_schedule(&items, which));
            let catalogue = nested(Catalogue::with(items, mode, sold_out).ok()?, which);
            let catalogue = catalogue.clone().ruled(rules).unwrap_or(catalogue);
            catalogue.clone().scheduled(schedule).ok().or(Some(catalogue))
        },
    )
}

/// Returns rules that name some of the items, or no rules.
fn some_rules(items: &[Item], which: prop::sample::Index) -> Rules {
    let kind = which.index(7) as u64;
    let of =
        || items.iter().take(1 + which.index(items.len())).map(|item| item.id.clone()).collect::<Vec<_>>();
    let limits = [
        Limit { max: 1 + kind, per_ms: None, wins_of: None },
        Limit { max: 3, per_ms: Some(1000 + kind), wins_of: Some(of()) },
    ];
    let soft = (kind > 3).then_some(Soft { from: 1, step: kind });
    let scope = if kind == 5 { Scope::Pool } else { Scope::User };
    let guarantees = [Guarantee { after: kind + 1, of: of(), scope, soft }];
    let limits = limits.into_iter().take(kind as usize % 3).collect();
    let guarantees = guarantees.into_iter().take(kind as usize % 2).collect();
    Rules::new(limits, guarantees).unwrap_or_default()
}

/// Returns the catalogue with tables that some of its items lead to, if possible.
fn nested(catalogue: Catalogue, which: prop::sample::Index) -> Catalogue {
    let leads = catalogue.items().iter().filter(|item| item.stock == Stock::Unlimited).take(which.index(4));
    let leads: Vec<Lead> = leads
        .enumerate()
        .map(|(number, item)| Lead { item: item.id.clone(), table: format!("table {}", number / 2).into() })
        .collect();
    let tables = (0..leads.len().div_ceil(2)).map(|number| Table {
        name: format!("table {number}").into(),
        items: vec![
            Item::limited(format!("inner\t{number}").replace('\t', " "), 3, 4),
            Item::unlimited(format!("more {number}"), 0),
        ],
    });
    catalogue.clone().nested(tables.collect(), &leads).unwrap_or(catalogue)
}

/// Returns a schedule for one of the items, or an empty one.
fn some_schedule(items: &[Item], which: prop::sample::Index) -> Schedule {
    let number = which.index(5) as u64;
    let unsold = if number == 2 { Unsold::Lapses } else { Unsold::Stays };
    let item = items[which.index(items.len())].id.clone();
    let release = Release { item, units: number + 1, from_ms: 1 + number, every_ms: 5, times: 7, unsold };
    Schedule::new(vec![release; number as usize % 3]).expect("it is sound")
}

fn any_format() -> impl Strategy<Value = FileFormat> {
    prop::sample::select(FileFormat::ALL.to_vec())
}

/// Generates pieces of texts that are almost catalogues.
fn any_piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "items",
        "mode",
        "sold_out",
        "id",
        "weight",
        "quantity",
        "catalog",
        "pool",
        "wal",
        "fallback",
        "schedule",
        "tables",
        "table",
        "name",
        "item",
        "units",
        "from",
        "2026-12-24T18:00:00Z",
        ":",
        ": ",
        "=",
        ",",
        "{",
        "}",
        "[",
        "]",
        "[[items]]",
        "\n",
        "\n- ",
        "\n  ",
        "- ",
        "\"",
        "'",
        "\\",
        "\\u",
        "#",
        "&a ",
        "*a",
        "!",
        "|",
        ">",
        "?",
        "%",
        "---",
        "...",
        "~",
        "null",
        "true",
        "1",
        "-1",
        "0.5",
        "1e9",
        "1e-9",
        "e",
        ".",
        "nan",
        "\u{feff}",
        "\r",
        "\t",
        "\0",
        "é",
        "\u{10ffff}",
        "per-unit",
        "unlimited",
        "\"\"\"",
        "<<",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn what_is_written_is_read_back(catalogue in any_catalogue()) {
        for format in FileFormat::ALL {
            let text = CatalogueFile::to_text(&catalogue, format);
            let file = CatalogueFile::parse(&text, format).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
            prop_assert_eq!(&file.catalogue, &catalogue);
            prop_assert_eq!((file.origin, file.unused), (Origin::Tidemark, vec![]));
        }
    }

    #[test]
    fn a_changed_file_is_read_or_refused(
        catalogue in any_catalogue(),
        format in any_format(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..4, any_piece()), 1..4),
    ) {
        let mut text: Vec<char> = CatalogueFile::to_text(&catalogue, format).chars().collect();
        for (place, removed, piece) in changes {
            let start = place.index(text.len() + 1);
            let end = (start + removed).min(text.len());
            text.splice(start..end, piece.chars());
        }
        let text: String = text.into_iter().collect();
        check_read_or_refused(&text, format)?;
    }

    #[test]
    fn any_text_is_read_or_refused(format in any_format(), text in "\\PC*", pieces in prop::collection::vec(any_piece(), 0..40)) {
        for text in [text, pieces.concat()] {
            check_read_or_refused(&text, format)?;
        }
    }
}

/// Checks that a parsed catalogue can be written and read again, and that an error message is
/// short.
fn check_read_or_refused(text: &str, format: FileFormat) -> Result<(), TestCaseError> {
    match CatalogueFile::parse(text, format) {
        Ok(file) => {
            let written = CatalogueFile::to_text(&file.catalogue, format);
            let again = CatalogueFile::parse(&written, format);
            let again = again.map_err(|error| TestCaseError::fail(format!("{error}\n{written}")))?;
            prop_assert_eq!(again.catalogue, file.catalogue);
        }
        Err(error) => prop_assert!(error.to_string().len() < 2_000, "{}", error),
    }
    Ok(())
}
