use super::*;

fn lens(words: &str) -> Result<Lens, WordError> {
    let words: Vec<&[u8]> = words.split(' ').filter(|word| !word.is_empty()).map(str::as_bytes).collect();
    Lens::new(b"source", &words, Unit::Milliseconds)
}

#[test]
fn words_are_transforms_with_what_they_read() {
    for (words, reads) in [
        ("celsius_to_fahrenheit", "the point"),
        ("AFFINE -1.5 2e3", "the point"),
        ("clamp 0 100", "the point"),
        ("expr x*2", "the point"),
        ("expr x/y WITH other ASOF 30s", "the point, and the other key's newest, at most 30000 older"),
        ("/ other ASOF 5", "the point, and the other key's newest, at most 5 older"),
        ("rate", "the point, and 1 before it"),
        ("log_return", "the point, and 1 before it"),
        ("moving avg 20", "the point, and 19 before it"),
        ("moving quantile:0.9 5m", "the point, and those less than 300000 older"),
        ("ewma 0.5", "the point, and 53 before it"),
        ("ewma 1", "the point, and 0 before it"),
        ("resample 1m linear", "the points before and behind"),
        ("fill 1s 0", "the points before and behind"),
        ("shift -1h", "the point -3600000 before it"),
    ] {
        let lens = lens(words).unwrap_or_else(|error| panic!("{words}: {error}"));
        let steps: Vec<_> = lens.steps().collect();
        assert_eq!(steps.len(), 1, "{words}");
        assert_eq!(steps[0].0.join(&b' '), words.as_bytes());
        assert_eq!(steps[0].1, reads, "{words}");
    }
}

#[test]
fn transforms_follow_each_other() {
    let lens =
        lens("fill 1s affine 2 1 resample 5s previous + a ASOF 1s abs expr x-y with b asof 0").unwrap();
    let steps: Vec<String> =
        lens.steps().map(|(words, _)| String::from_utf8(words.join(&b' ')).unwrap()).collect();
    assert_eq!(
        steps,
        ["fill 1s", "affine 2 1", "resample 5s previous", "+ a ASOF 1s", "abs", "expr x-y with b asof 0"]
    );
    assert_eq!(lens.keys().collect::<Vec<_>>(), [&b"source"[..], b"a", b"b"]);
}

#[test]
fn what_is_no_transform_is_refused_with_what_would_be() {
    for (words, expected) in [
        ("celcius_to_kelvin", "unknown transform 'celcius_to_kelvin'"),
        ("affine 2", "affine needs a factor and an offset, two numbers"),
        ("affine 2 x", "affine needs a factor and an offset, two numbers, not 'x'"),
        ("affine nan 0", "affine needs a factor and an offset, two numbers, not 'nan'"),
        ("clamp 5 4", "clamp needs a lowest and a highest value, two numbers, not '4'"),
        ("expr x+", "the expression is not valid: a value is missing at column 3"),
        ("expr x+y", "an expression with y needs WITH key ASOF age behind it"),
        ("expr x WITH a ASOF 1", "the expression does not use y, the value of the key behind WITH"),
        ("/ a", "an operator needs ASOF and the highest age"),
        ("/ a asof", "an operator needs ASOF and the highest age"),
        ("/ a b 1", "an operator needs ASOF and the highest age"),
        (
            "moving twa 5",
            "moving needs an aggregation that does not depend on times, such as avg, and a span, not 'twa'",
        ),
        ("moving avg 0", "moving needs a span"),
        ("moving avg 16385", "moving needs a span"),
        ("moving avg 0s", "moving needs a span"),
        ("ewma 0.001", "ewma needs a weight from 0.01 to 1, not '0.001'"),
        ("resample 0", "resample needs a step"),
        ("fill 1ns", "fill needs a step"),
        ("shift", "shift needs a duration"),
    ] {
        let error = lens(words).expect_err(words).to_string();
        assert!(error.starts_with(expected), "{words}: {error}");
    }
    let many = "abs ".repeat(65);
    assert_eq!(lens(&many).unwrap_err().to_string(), "a lens has at most 64 transforms, not 65");
    let long = format!("expr {}", "1+".repeat(9_000));
    assert!(lens(&long).unwrap_err().to_string().contains("more than 16384"));
}

#[test]
fn a_lens_is_read_back_as_it_was_written() {
    for words in [
        "moving avg 5m / other ASOF 1m",
        "moving avg 5m / labels ASOF 1m LABELS room hall labels labels",
        "labels asof asof",
    ] {
        let lens = lens(words).unwrap();
        let mut encoded = Vec::new();
        lens.encode(&mut encoded);
        let mut bytes = Cursor::new(&encoded);
        assert_eq!(Lens::decode(&mut bytes), Some(lens), "{words}");
        assert!(bytes.is_empty());
        for end in 0..encoded.len() {
            assert_eq!(Lens::decode(&mut Cursor::new(&encoded[..end])), None, "{words}, {end}");
        }
    }
}

#[test]
fn labels_count_towards_the_bytes_of_a_lens() {
    let long = format!("abs LABELS room {}", "h".repeat(BYTES_MAX));
    assert!(lens(&long).unwrap_err().to_string().contains("more than 16384"));
}
