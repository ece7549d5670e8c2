//! Name: interned dotted paths.

use std::any;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::iter;

use tidemark_circuit::{Extent, Name, name};

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, unreachable_pub, reason = "read from the source, to prove that every scenario is covered")]
pub const NOT_APPLICABLE: &[(&str, &str)] = &[
    ("NAM-032", "Java: enum constants with a body are classes"),
    ("NAM-033", "Java: enum constants know their type and name"),
    ("NAM-034", "Java: enum constants know their type and name"),
    ("NAM-042", "Java: null argument"),
    ("NAM-048", "Java: null argument"),
    ("NAM-058", "Java: null argument"),
    ("NAM-064", "Java: null argument"),
    ("NAM-082", "Java: null argument"),
    ("NAM-083", "Java: null argument"),
    ("NAM-084", "Java: null argument"),
    ("NAM-085", "Java: null argument"),
    ("NAM-086", "Java: null argument"),
];

/// The name of this valid path.
fn named(path: &str) -> Name {
    Name::new(path).unwrap()
}

/// The parts from the inside out.
fn parts(name: Name) -> Vec<&'static str> {
    name.iter().map(Name::part).collect()
}

/// The lengths of all parts, by fold.
fn length(name: Name) -> usize {
    name.fold(|name| name.part().len(), |sum, name| sum + name.part().len())
}

/// The parts from the outside in, by fold from the inside out.
fn prepended(name: Name, separator: char) -> String {
    name.fold(|name| name.part().to_owned(), |text, name| format!("{}{separator}{text}", name.part()))
}

/// The parts from the outside in, by fold from the outside in.
fn appended(name: Name) -> String {
    name.fold_to(|name| name.part().to_owned(), |text, name| format!("{text}.{}", name.part()))
}

/// The parts as an iterator that yields each only once.
fn once<const N: usize>(parts: [&str; N]) -> impl Iterator<Item = &str> {
    let mut parts = parts.into_iter();
    iter::from_fn(move || parts.next())
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "a mapper gets a reference")]
fn upper(name: &Name) -> String {
    name.part().to_uppercase()
}

#[test]
fn nam_001_names_are_ordered_as_their_text() {
    let (a, b, c) = (named("a"), named("b"), named("c"));
    assert_eq!(a.cmp(&b), Ordering::Less);
    assert_eq!(c.cmp(&b), Ordering::Greater);
    assert_eq!(a.cmp(&a), Ordering::Equal);
}

#[test]
fn nam_002_a_name_comes_before_what_it_encloses() {
    assert!(named("root") < named("root.child"));
    assert!(named("root.child") < named("root-child"), "also before a name with a byte below the dot");
}

#[test]
fn nam_003_the_depth_is_the_number_of_parts() {
    assert_eq!(["root", "root.child", "a.b.c.d"].map(|path| named(path).depth()), [1, 2, 4]);
}

#[test]
fn nam_004_what_is_done_with_the_enclosure_gets_the_parent() {
    let mut seen = Vec::new();
    named("parent.child").enclosure().into_iter().for_each(|name| seen.push(name.part()));
    assert_eq!(seen, ["parent"]);
}

#[test]
fn nam_005_nothing_is_done_with_the_enclosure_of_a_root() {
    let mut visits = 0;
    named("root").enclosure().into_iter().for_each(|_| visits += 1);
    assert_eq!(visits, 0);
}

#[test]
fn nam_006_enclosures_lead_to_the_root_and_end() {
    let c = named("a.b.c.d").enclosure().unwrap();
    let b = c.enclosure().unwrap();
    let a = b.enclosure().unwrap();
    assert_eq!([c.part(), b.part(), a.part()], ["c", "b", "a"]);
    assert_eq!(a.enclosure(), None);
}

#[test]
fn nam_007_names_of_one_text_are_equal() {
    assert_eq!(named("one.text"), named(&["one", "text"].join(".")));
}

#[test]
fn nam_008_a_name_is_the_first_of_its_own_walk() {
    let name = named("a.b");
    assert_eq!(name.iter().next(), Some(&name));
}

#[test]
fn nam_009_the_extremity_is_the_first_part() {
    let extremity = named("a.b.c.d").extremity().to_owned();
    assert_eq!(extremity.part(), "a");
    assert_eq!(extremity.enclosure(), None);
}

#[test]
fn nam_010_the_extremity_of_a_root_is_itself() {
    assert_eq!(named("root").extremity(), &named("root"));
}

#[test]
fn nam_011_fold_adds_lengths_and_prepends_parts() {
    let name = named("a.b.c.d");
    assert_eq!(length(name), 4);
    assert_eq!(prepended(name, '/'), "a/b/c/d");
}

#[test]
fn nam_012_prepending_outwards_equals_appending_inwards() {
    let name = named("first.second.third");
    assert_eq!(prepended(name, '.'), appended(name));
}

#[test]
fn nam_013_fold_to_goes_from_the_first_part_to_the_last() {
    assert_eq!(appended(named("a.b.c")), "a.b.c");
}

#[test]
fn nam_014_fold_to_of_one_part_is_that_part() {
    assert_eq!(appended(named("solo")), "solo");
}

#[test]
fn nam_015_fold_adds_the_lengths_of_three_parts() {
    assert_eq!(length(named("a.b.c")), 3);
}

#[test]
fn nam_016_fold_counts_one_part() {
    assert_eq!(named("test").fold(|_| 1, |count, _| count + 1), 1);
}

#[test]
fn nam_017_names_of_one_text_have_one_hash() {
    let hasher = RandomState::new();
    assert_eq!(hasher.hash_one(named("one.hash")), hasher.hash_one(named("one").extend("hash").unwrap()));
    let map = HashMap::from([(named("one.hash"), 1)]);
    assert_eq!(map.get(&named("one.hash")), Some(&1));
}

#[test]
fn nam_018_names_of_different_texts_differ() {
    assert_ne!(named("one.text"), named("another.text"));
    assert_ne!(named("a.b"), named("ab"));
}

#[test]
fn nam_019_an_extended_name_is_the_very_name_of_its_path() {
    let extended = named("root").extend("a").and_then(|name| name.extend("b")).unwrap();
    assert_eq!(extended, named("root.a.b"));
    assert_eq!(extended.id(), named("root.a.b").id());
}

#[test]
fn nam_020_a_name_made_twice_is_the_very_same() {
    let (first, second) = (named("made.twice"), named("made.twice"));
    assert_eq!(first.id(), second.id());
    assert!(std::ptr::eq(first.path(), second.path()));
}

#[test]
fn nam_021_a_walk_of_one_part_ends_after_it() {
    let name = named("single");
    let mut walk = name.iter();
    assert_eq!(walk.next(), Some(&name));
    assert_eq!(walk.next(), None);
}

#[test]
fn nam_022_a_walk_goes_from_the_last_part_to_the_first() {
    let name = named("a.b.c");
    let mut walk = name.iter().map(Name::part);
    assert_eq!([walk.next(), walk.next(), walk.next(), walk.next()], [Some("c"), Some("b"), Some("a"), None]);
}

#[test]
fn nam_023_the_name_of_an_array_type_is_that_of_its_text() {
    assert_eq!(Name::of::<[i32; 4]>(), named(any::type_name::<[i32; 4]>()));
}

#[test]
fn nam_024_the_name_of_an_array_type_is_always_the_same() {
    assert_eq!(Name::of::<[i32; 4]>(), Name::of::<[i32; 4]>());
}

#[test]
fn nam_025_a_name_is_joined_by_that_of_a_type() {
    assert!(named("root").join(Name::of::<i32>()).unwrap().part().contains("i32"));
}

#[test]
fn nam_026_the_name_of_a_type_is_its_module_path() {
    assert_eq!(Name::of::<String>().path(), "alloc.string.String");
}

#[test]
fn nam_027_a_deep_name_has_all_its_parts() {
    let name = named("root.level1.level2.level3.level4");
    assert_eq!(name.depth(), 5);
    assert_eq!(name.part(), "level4");
    assert_eq!(name.extremity().part(), "root");
    assert_eq!(parts(name), ["level4", "level3", "level2", "level1", "root"]);
}

#[test]
fn nam_028_a_name_joined_by_a_name_has_the_parts_of_both() {
    let name = named("root").join(named("child.grandchild")).unwrap();
    assert_eq!(name.path(), "root.child.grandchild");
    assert_eq!(name.part(), "grandchild");
    assert_eq!(name.enclosure().unwrap().path(), "root.child");
}

#[test]
fn nam_029_empty_parts_are_refused() {
    for path in ["a...b", "a..b..c", "..a", "a.."] {
        assert!(Name::new(path).is_err(), "{path}");
    }
}

#[test]
fn nam_030_a_name_extended_by_no_parts_is_itself() {
    let base = named("base");
    assert_eq!(base.extend_parts::<[&str; 0]>([]).unwrap(), base);
    assert_eq!(base.extend_parts(Vec::<String>::new()).unwrap(), base);
}

#[test]
fn nam_031_the_empty_text_is_refused() {
    assert!(Name::new("").is_err());
}

#[test]
fn nam_035_a_name_extended_twice_by_one_part_is_the_same() {
    let root = named("root");
    assert_eq!(root.extend("child").unwrap(), root.extend("child").unwrap());
}

/// Types nested in modules, in place of nested classes.
mod outer {
    pub(super) struct Outer;

    pub(super) mod inner {
        pub(in super::super) struct Inner;
    }
}

#[test]
fn nam_036_the_name_of_a_type_is_joined_by_that_of_a_nested_one() {
    let (outer, inner) = (Name::of::<outer::Outer>(), Name::of::<outer::inner::Inner>());
    assert_eq!(outer.join(inner).unwrap().path(), format!("{outer}.{inner}"));
}

#[test]
fn nam_037_the_name_of_a_nested_type_has_dots() {
    assert_eq!(Name::of::<outer::inner::Inner>().path(), "scenarios.conformance.name.outer.inner.Inner");
}

#[test]
fn nam_038_a_list_may_have_paths_among_its_parts() {
    let name = Name::from_parts(["root", "child.grandchild"]).unwrap();
    assert_eq!((name.depth(), name.path()), (3, "root.child.grandchild"));
}

#[test]
fn nam_044_a_name_is_extended_by_a_list_with_paths_among_its_parts() {
    let name = named("base").extend_parts(["level1", "level2.level3"]).unwrap();
    assert_eq!((name.depth(), name.path()), (4, "base.level1.level2.level3"));
}

/// Parts that no name can have.
macro_rules! refused {
    ($($test:ident: $name:expr;)*) => {$(
        #[test]
        fn $test() {
            let error = $name.unwrap_err();
            assert!(error.to_string().contains("empty part"), "{error}");
        }
    )*};
}

refused! {
    nam_039_a_list_with_a_double_dot_is_refused: Name::from_parts(["root", "a..b"]);
    nam_040_a_list_with_an_empty_part_is_refused: Name::from_parts(["root", ""]);
    nam_041_a_list_with_a_leading_dot_is_refused: Name::from_parts(["root", ".invalid"]);
    nam_043_a_list_with_a_trailing_dot_is_refused: Name::from_parts(["root", "invalid."]);
    nam_045_an_extension_by_a_list_with_a_double_dot_is_refused: named("base").extend_parts(["child", "a..b"]);
    nam_046_an_extension_by_a_list_with_an_empty_part_is_refused: named("base").extend_parts(["child", ""]);
    nam_047_an_extension_by_a_list_with_a_leading_dot_is_refused:
        named("base").extend_parts(["child", ".invalid"]);
    nam_049_an_extension_by_a_list_with_a_trailing_dot_is_refused:
        named("base").extend_parts(["child", "invalid."]);
    nam_055_an_iterator_with_a_double_dot_is_refused: Name::from_parts(once(["root", "a..b"]));
    nam_056_an_iterator_with_an_empty_part_is_refused: Name::from_parts(once(["root", ""]));
    nam_057_an_iterator_with_a_leading_dot_is_refused: Name::from_parts(once(["root", ".invalid"]));
    nam_059_an_iterator_with_a_trailing_dot_is_refused: Name::from_parts(once(["root", "invalid."]));
    nam_061_an_extension_by_an_iterator_with_a_double_dot_is_refused:
        named("base").extend_parts(once(["child", "a..b"]));
    nam_062_an_extension_by_an_iterator_with_an_empty_part_is_refused:
        named("base").extend_parts(once(["child", ""]));
    nam_063_an_extension_by_an_iterator_with_a_leading_dot_is_refused:
        named("base").extend_parts(once(["child", ".invalid"]));
    nam_065_an_extension_by_an_iterator_with_a_trailing_dot_is_refused:
        named("base").extend_parts(once(["child", "invalid."]));
    nam_070_a_leading_dot_is_refused: Name::new(".a");
    nam_077_a_double_dot_is_refused: Name::new("a..b");
    nam_092_a_trailing_dot_is_refused: Name::new("a.");
}

#[test]
fn nam_050_a_name_is_extended_by_what_is_mapped_to_parts() {
    let name = named("root").extend_parts([1, 2].map(|n| format!("item{n}"))).unwrap();
    assert_eq!(name.part(), "item2");
    assert_eq!(name.path(), "root.item1.item2");
}

#[test]
fn nam_051_a_name_is_extended_by_a_list() {
    assert_eq!(named("root").extend_parts(["level1", "level2"]).unwrap().part(), "level2");
}

#[test]
fn nam_052_a_list_is_mapped_to_parts() {
    let name = Name::from_parts([1, 2, 3].map(|n| n.to_string())).unwrap();
    assert_eq!((name.part(), name.depth()), ("3", 3));
}

#[test]
fn nam_053_a_list_of_parts_makes_a_name() {
    let name = Name::from_parts(["first", "second", "third"]).unwrap();
    assert_eq!((name.part(), name.depth()), ("third", 3));
}

#[test]
fn nam_054_an_iterator_may_have_paths_among_its_parts() {
    let name = Name::from_parts(once(["root", "child.grandchild"])).unwrap();
    assert_eq!((name.depth(), name.path()), (3, "root.child.grandchild"));
}

#[test]
fn nam_060_a_name_is_extended_by_an_iterator_with_paths_among_its_parts() {
    let name = named("base").extend_parts(once(["level1", "level2.level3"])).unwrap();
    assert_eq!((name.depth(), name.path()), (4, "base.level1.level2.level3"));
}

#[test]
fn nam_066_a_name_is_extended_by_an_iterator_mapped_to_parts() {
    let name = named("root").extend_parts([5, 10].iter().map(|n| format!("val{n}"))).unwrap();
    assert_eq!(name.part(), "val10");
}

#[test]
fn nam_067_a_name_is_extended_by_an_iterator() {
    assert_eq!(named("root").extend_parts(once(["a", "b"])).unwrap().part(), "b");
}

#[test]
fn nam_068_an_iterator_is_mapped_to_parts() {
    assert_eq!(Name::from_parts([10, 20, 30].iter().map(ToString::to_string)).unwrap().part(), "30");
}

#[test]
fn nam_069_an_iterator_of_parts_makes_a_name() {
    assert_eq!(Name::from_parts(once(["alpha", "beta", "gamma"])).unwrap().part(), "gamma");
}

#[test]
fn nam_071_a_part_may_have_a_thousand_characters() {
    assert_eq!(named(&"x".repeat(1000)).part().len(), 1000);
}

/// The name of a function is that of its type.
fn name_of_function<F: Fn()>(_: F) -> Name {
    Name::of::<F>()
}

fn some_function() {}

#[test]
fn nam_072_a_name_is_joined_by_that_of_a_function() {
    let name = named("root").join(name_of_function(some_function)).unwrap();
    assert_eq!(name.path(), "root.scenarios.conformance.name.some_function");
}

#[test]
fn nam_073_the_name_of_a_function_contains_its_own() {
    assert!(name_of_function(some_function).part().contains("some_function"));
}

#[test]
fn nam_074_a_type_of_nested_arrays_of_objects_is_named_as_it_is_written() {
    assert_eq!(Name::of::<[[String; 2]; 2]>().path(), any::type_name::<[[String; 2]; 2]>());
}

#[test]
fn nam_075_a_type_of_nested_arrays_has_one_part() {
    let name = Name::of::<[[i32; 2]; 2]>();
    assert_eq!((name.path(), name.depth()), ("[[i32; 2]; 2]", 1));
}

#[test]
fn nam_076_a_name_is_extended_by_a_path() {
    let name = named("root").extend("child.grandchild").unwrap();
    assert_eq!(name.part(), "grandchild");
    assert_eq!(name.enclosure(), Some(named("root.child")));
}

#[test]
fn nam_078_a_path_makes_a_name_with_an_enclosure() {
    let name = named("root.child.grandchild");
    assert_eq!(name.part(), "grandchild");
    assert!(name.enclosure().is_some());
}

#[test]
fn nam_079_a_name_joined_by_a_name_has_an_enclosure() {
    assert_eq!(named("root").join(named("suffix")).unwrap().enclosure(), Some(named("root")));
}

#[test]
fn nam_080_a_name_joined_by_a_name_starts_with_its_own_path() {
    let name = named("root").join(named("child.grandchild")).unwrap();
    assert!(name.path().starts_with("root"));
    assert_eq!(name.part(), "grandchild");
}

#[test]
fn nam_081_dashes_underscores_and_digits_stay_as_they_are() {
    assert_eq!(named("test-name_123").part(), "test-name_123");
}

#[test]
fn nam_087_a_slice_type_is_one_part_as_it_has_no_path_of_its_own() {
    let name = Name::of::<[String]>();
    assert_eq!((name.path(), name.part(), name.depth()), (any::type_name::<[String]>(), name.path(), 1));
}

#[test]
fn nam_088_a_slice_type_of_numbers_is_named_as_it_is_written() {
    assert_eq!((Name::of::<[i32]>().path(), Name::of::<[i32]>().depth()), ("[i32]", 1));
}

#[test]
fn nam_089_a_part_may_have_one_character() {
    assert_eq!(named("x").part(), "x");
}

#[test]
fn nam_090_a_name_of_one_part_has_no_enclosure() {
    assert_eq!((named("root").part(), named("root").enclosure()), ("root", None));
}

#[test]
fn nam_091_an_extended_name_has_the_old_one_as_enclosure() {
    let name = named("root").extend("child").unwrap();
    assert_eq!((name.part(), name.enclosure()), ("child", Some(named("root"))));
}

#[test]
fn nam_093_the_part_is_the_end_of_the_path() {
    assert_eq!((named("root.child").part(), named("root.child").path()), ("child", "root.child"));
}

#[test]
fn nam_094_a_path_takes_a_character_as_separator() {
    assert_eq!(named("x.y.z").path_with('-'), "x-y-z");
}

#[test]
fn nam_095_a_path_has_dots_unless_specified_otherwise() {
    assert_eq!(named("a.b.c").path(), "a.b.c");
    assert_eq!(Extent::path(&named("a.b.c")), "a.b.c");
    assert_eq!(named("a.b.c").path_with(Name::SEPARATOR), "a.b.c");
}

#[test]
fn nam_096_a_path_takes_a_mapper_and_a_character() {
    assert_eq!(named("test.name").path_map(upper, '|'), "TEST|NAME");
}

#[test]
fn nam_097_a_path_takes_a_mapper_and_a_text() {
    assert_eq!(named("foo.bar").path_map(upper, "->"), "FOO->BAR");
}

#[test]
fn nam_098_a_path_takes_a_mapper_and_the_usual_dot() {
    assert_eq!(named("a.b.c").path_map(upper, Name::SEPARATOR), "A.B.C");
}

#[test]
fn nam_099_a_path_takes_a_text_as_separator() {
    assert_eq!(named("one.two.three").path_with("::"), "one::two::three");
}

#[test]
fn nam_100_a_walk_has_as_many_steps_as_parts() {
    assert_eq!(named("one.two.three").iter().count(), 3);
}

#[test]
fn nam_101_iterator_adapters_work_on_a_walk() {
    let name = named("alpha.beta.gamma.delta");
    assert_eq!(name.iter().map(|name| name.part().len()).max(), Some(5));
    assert!(name.iter().any(|name| name.part().len() < 5));
}

#[test]
fn nam_102_a_collected_walk_is_from_the_last_part_to_the_first() {
    assert_eq!(parts(named("a.b.c.d")), ["d", "c", "b", "a"]);
}

#[test]
fn nam_103_the_text_is_the_path() {
    assert_eq!(named("test.example").to_string(), "test.example");
    assert_eq!(format!("{:>14}|", named("test.example")), "  test.example|");
}

#[test]
fn nam_104_all_ways_of_counting_agree() {
    let name = named("one.two.three.four");
    assert_eq!(name.depth(), 4);
    assert_eq!(name.iter().count(), 4);
    assert_eq!(name.fold(|_| 1, |count, _| count + 1), 4);
}

#[test]
fn nam_105_a_name_lies_within_all_its_enclosures_but_not_within_itself() {
    let root = named("root");
    let child = named("root.child");
    let grandchild = named("root.child.grandchild");
    assert!(child.within(&root) && grandchild.within(&root) && grandchild.within(&child));
    assert!(!root.within(&child) && !root.within(&root));
    assert_eq!(name!("root"), root);
}
