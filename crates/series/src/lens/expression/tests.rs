use super::*;
use proptest::prelude::*;

fn value(text: &str, x: f64, y: f64) -> f64 {
    text.parse::<Expression>().unwrap_or_else(|error| panic!("{text}: {error}")).of(x, y)
}

#[test]
fn operators_bind_as_in_mathematics() {
    for (text, expected) in [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("8 - 3 - 2", 3.0),
        ("8 / 4 / 2", 1.0),
        ("2 ^ 3 ^ 2", 512.0),
        ("-2 ^ 2", -4.0),
        ("2 ^ -1", 0.5),
        ("--x", 10.0),
        ("2 - -x", 12.0),
        ("2*x + 3*y", 32.0),
        ("x - y * 2", 2.0),
        ("y - (x - 1)", -5.0),
        ("1 - x", -9.0),
        ("x/y", 2.5),
        ("1e3 + .5", 1_000.5),
        ("1.5E-1", 0.15),
        ("abs(-x) + sqrt(y)", 12.0),
        ("min(x, y) + max(x, 11)", 15.0),
        ("clamp(x, 0, 5)", 5.0),
        ("clamp(-x, 0, 5)", 0.0),
        ("clamp(y, x - 7, x)", 4.0),
        ("floor(2.7) + ceil(2.1) + round(2.5)", 8.0),
        ("log2(8) + log10(100) + ln(1) + exp(0)", 6.0),
        ("pow(y, 2)", 16.0),
        ("3 - min(2, x)", 1.0),
    ] {
        assert_eq!(value(text, 10.0, 4.0), expected, "{text}");
    }
}

#[test]
fn what_is_not_defined_is_nan_or_infinite() {
    assert!(value("ln(x)", -1.0, 0.0).is_nan());
    assert!(value("min(x, 1)", f64::NAN, 0.0).is_nan());
    assert!(value("min(1, x)", f64::NAN, 0.0).is_nan());
    assert!(value("max(x, 1)", f64::NAN, 0.0).is_nan());
    assert_eq!(value("1 / x", 0.0, 0.0), f64::INFINITY);
}

#[test]
fn an_error_says_what_is_wrong_and_where() {
    for (text, expected) in [
        ("", "a value is missing at column 1"),
        ("x +", "a value is missing at column 4"),
        ("(x", "')' is missing at column 3"),
        ("x)", "')' is not expected at column 2"),
        ("x x", "'x' is not expected at column 3"),
        ("z + 1", "'z' is neither x, y nor a function at column 1"),
        ("1 + sin(x)", "'sin' is neither x, y nor a function at column 5"),
        ("min(x)", "',' is missing at column 6"),
        ("1.2.3", "'1.2.3' is not a number at column 1"),
        ("1e", "'1e' is not a number at column 1"),
        ("x % 2", "'%' is not expected at column 3"),
        ("*x", "a value is expected, not '*', at column 1"),
    ] {
        assert_eq!(text.parse::<Expression>().unwrap_err().to_string(), expected, "{text}");
    }
    let deep = "(".repeat(500);
    assert!(deep.parse::<Expression>().unwrap_err().to_string().contains("nested deeper than 64"));
    let long = "x+".repeat(600);
    assert!(long.parse::<Expression>().unwrap_err().to_string().contains("more than 1024"));
}

/// An expression in full parentheses, and a function that computes it.
#[derive(Debug, Clone)]
enum Tree {
    X,
    Y,
    Number(i8),
    Add(Box<Tree>, Box<Tree>),
    Subtract(Box<Tree>, Box<Tree>),
    Multiply(Box<Tree>, Box<Tree>),
    Divide(Box<Tree>, Box<Tree>),
    Negate(Box<Tree>),
}

impl Tree {
    fn text(&self) -> String {
        match self {
            Self::X => "x".into(),
            Self::Y => "y".into(),
            Self::Number(number) => format!("({number})"),
            Self::Add(left, right) => format!("({} + {})", left.text(), right.text()),
            Self::Subtract(left, right) => format!("({}-{})", left.text(), right.text()),
            Self::Multiply(left, right) => format!("({} *{})", left.text(), right.text()),
            Self::Divide(left, right) => format!("({}/ {})", left.text(), right.text()),
            Self::Negate(of) => format!("-({})", of.text()),
        }
    }

    fn value(&self, x: f64, y: f64) -> f64 {
        match self {
            Self::X => x,
            Self::Y => y,
            Self::Number(number) => f64::from(*number),
            Self::Add(left, right) => left.value(x, y) + right.value(x, y),
            Self::Subtract(left, right) => left.value(x, y) - right.value(x, y),
            Self::Multiply(left, right) => left.value(x, y) * right.value(x, y),
            Self::Divide(left, right) => left.value(x, y) / right.value(x, y),
            Self::Negate(of) => -of.value(x, y),
        }
    }
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![Just(Tree::X), Just(Tree::Y), any::<i8>().prop_map(Tree::Number)];
    leaf.prop_recursive(5, 40, 2, |inner| {
        let pair = || (inner.clone(), inner.clone());
        prop_oneof![
            pair().prop_map(|(left, right)| Tree::Add(left.into(), right.into())),
            pair().prop_map(|(left, right)| Tree::Subtract(left.into(), right.into())),
            pair().prop_map(|(left, right)| Tree::Multiply(left.into(), right.into())),
            pair().prop_map(|(left, right)| Tree::Divide(left.into(), right.into())),
            inner.prop_map(|of| Tree::Negate(of.into())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn a_program_computes_what_its_text_says(tree in tree(), x in any::<f64>(), y in any::<f64>()) {
        let (computed, expected) = (value(&tree.text(), x, y), tree.value(x, y));
        prop_assert!(
            computed.to_bits() == expected.to_bits() || (computed.is_nan() && expected.is_nan()),
            "{}: {computed} instead of {expected}",
            tree.text()
        );
    }

    #[test]
    fn any_text_is_compiled_or_refused(text in "[-xyz0-9.e+*/^(), abcminlog]{0,40}") {
        if let Ok(expression) = text.parse::<Expression>() {
            expression.of(1.0, 2.0);
        }
    }
}
