//! Frames as text, for logs that people read. Each frame has one spelling, which restores it byte
//! by byte.
//!
//! ```text
//! draws from 17 at 1767225600000000 chain 9f86…08: 3 3 - confirm 12 set 3 weight 5 stock 100
//! ```
//!
//! A number is a draw of that item, `-` a draw of nothing. Other events begin with a word:
//!
//! ```text
//! different COUNT ITEM...                       draws of one call, without repeats
//! reserve UNTIL allowed|excluded COUNT ITEM...  reserved draws; whether an item may occur twice
//! asked [user=ID] [request=ID] [now TIME] [until TIME] allowed|excluded COUNT ITEM...
//!                                               draws of a user or a request ID, or of a call
//!                                               whose last draws were impossible
//! confirm|cancel|expire NUMBER                  end of a reservation
//! set ITEM weight WEIGHT stock STOCK            stock: a number or `unlimited`
//! add ID weight WEIGHT stock STOCK
//! remove ITEM
//! return ITEM COUNT
//! return-by user=ID now TIME ITEM COUNT
//! advance TIME                                  schedule up to this time, milliseconds since 1970
//! epoch SEED NEXT-SECRET                        both hexadecimal; `-` for no seed
//! ```
//!
//! Blanks in IDs are written as `%20`, and other special bytes alike.

use super::{CHAIN_BYTES, Frame, FrameError};
use crate::by::By;
use crate::catalogue::item::{AMOUNT_MAX, Stock};
use crate::draw::secret::Secret;
use crate::ending::Ending;
use crate::record::bytes::put_number;
use crate::record::event::{Asked, Event, Events, Recorder};
use crate::repeats::Repeats;
use std::fmt::Write;
use std::str::SplitAsciiWhitespace;

/// Appends a frame as text; `frame` is the output of [`Frame::write`].
///
/// # Errors
/// [`FrameError::Malformed`] if it is not a frame or contains bytes that are not an event; then
/// nothing is appended.
pub(super) fn write(frame: &[u8], into: &mut String) -> Result<(), FrameError> {
    let begin = into.len();
    let (Frame { time_us, first_draw, events }, chain) = Frame::read_stated(frame)?;
    // Writing to memory cannot fail.
    let _ = write!(into, "draws from {first_draw} at {time_us} chain {chain}:");
    for event in Events::new(events) {
        let Ok(event) = event else {
            into.truncate(begin);
            return Err(FrameError::Malformed { bytes: frame.len() });
        };
        into.push(' ');
        write_event(&event, into);
    }
    Ok(())
}

fn write_event(event: &Event<'_>, into: &mut String) {
    let _ = match event {
        Event::Drew(None) => into.write_char('-'),
        Event::Drew(Some(item)) => write!(into, "{item}"),
        Event::DrewDifferent { items } => {
            let _ = write!(into, "different {}", items.len());
            write_items(items, into);
            Ok(())
        }
        Event::Reserved { items, repeats, until_us } => {
            let _ = write!(into, "reserve {until_us} {} {}", repeats_word(*repeats), items.len());
            write_items(items, into);
            Ok(())
        }
        Event::Ended { number, how } => write!(into, "{} {number}", ending_word(*how)),
        Event::Changed { item, weight, stock } => {
            let _ = write!(into, "set {item} weight {weight} stock ");
            write_stock(*stock, into);
            Ok(())
        }
        Event::Added { id, weight, stock } => {
            into.push_str("add ");
            write_id(id, into);
            let _ = write!(into, " weight {weight} stock ");
            write_stock(*stock, into);
            Ok(())
        }
        Event::Removed { item } => write!(into, "remove {item}"),
        Event::GivenBack { item, count } => write!(into, "return {item} {count}"),
        Event::GivenBackBy { user, now_ms, item, count } => {
            into.push_str("return-by");
            write_name("user", user, into);
            write!(into, " now {now_ms} {item} {count}")
        }
        Event::Asked(asked) => {
            write_asked(asked, into);
            Ok(())
        }
        Event::Advanced { now_ms } => write!(into, "advance {now_ms}"),
        Event::Epoch { client_seed, after } => {
            into.push_str("epoch ");
            write_bytes(client_seed, into);
            into.push(' ');
            write_bytes(after.reveal(), into);
            Ok(())
        }
    };
}

fn write_asked(asked: &Asked<'_>, into: &mut String) {
    let Asked { by: By { user, request, now_ms }, items, repeats, until_us } = asked;
    into.push_str("asked");
    for (what, name) in [("user", user), ("request", request)] {
        name.inspect(|name| write_name(what, name, into));
    }
    for (what, time) in [("now", Some(*now_ms).filter(|now_ms| *now_ms > 0)), ("until", *until_us)] {
        time.inspect(|time| _ = write!(into, " {what} {time}"));
    }
    let _ = write!(into, " {} {}", repeats_word(*repeats), items.len());
    write_items(items, into);
}

/// Writes a name of bytes; those that are not printable ASCII, and `%`, are escaped.
fn write_name(what: &str, name: &[u8], into: &mut String) {
    let _ = write!(into, " {what}=");
    for &byte in name {
        let _ = if byte.is_ascii_graphic() && byte != b'%' {
            into.write_char(char::from(byte))
        } else {
            write!(into, "%{byte:02x}")
        };
    }
}

fn write_items(items: &[Option<u32>], into: &mut String) {
    for item in items {
        into.push(' ');
        write_event(&Event::Drew(*item), into);
    }
}

fn write_stock(stock: Stock, into: &mut String) {
    let _ = match stock {
        Stock::Unlimited => into.write_str("unlimited"),
        Stock::Limited(left) => write!(into, "{left}"),
    };
}

fn write_bytes(bytes: &[u8], into: &mut String) {
    if bytes.is_empty() {
        into.push('-');
    }
    bytes.iter().for_each(|byte| {
        let _ = write!(into, "{byte:02x}");
    });
}

/// Writes an id; `%`, white space and control characters are escaped. An empty id is `%`.
fn write_id(id: &str, into: &mut String) {
    if id.is_empty() {
        into.push('%');
    }
    for letter in id.chars() {
        if letter == '%' || letter.is_whitespace() || letter.is_control() {
            letter.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| {
                let _ = write!(into, "%{byte:02x}");
            });
        } else {
            into.push(letter);
        }
    }
}

/// Appends the bytes of a frame given as text.
///
/// # Errors
/// [`FrameError::Malformed`]; discard what was appended then.
pub(super) fn read(words: &str, into: &mut Vec<u8>) -> Result<(), FrameError> {
    let events = Words(words.split_ascii_whitespace()).frame(into);
    let events = events.ok_or(FrameError::Malformed { bytes: words.len() })?;
    into.extend_from_slice(events.bytes());
    Ok(())
}

struct Words<'a>(SplitAsciiWhitespace<'a>);

impl<'a> Words<'a> {
    /// Appends everything before the events, and returns the events.
    fn frame(&mut self, into: &mut Vec<u8>) -> Option<Recorder> {
        self.expect("draws")?;
        self.expect("from")?;
        let first_draw = self.number()?;
        self.expect("at")?;
        let time_us = self.number()?;
        self.expect("chain")?;
        let chain = bytes(self.0.next()?.strip_suffix(':')?)?;
        into.extend_from_slice(&<[u8; CHAIN_BYTES]>::try_from(chain).ok()?);
        put_number(into, time_us);
        put_number(into, first_draw);
        let mut events = Recorder::default();
        while let Some(word) = self.0.next() {
            self.event(word, &mut events)?;
        }
        Some(events)
    }

    fn event(&mut self, word: &'a str, into: &mut Recorder) -> Option<()> {
        let event = match word {
            "different" => Event::DrewDifferent { items: self.items()? },
            "reserve" => {
                let until_us = self.number()?;
                let repeats = repeats(self.0.next()?)?;
                Event::Reserved { items: self.items()?, repeats, until_us }
            }
            "set" => {
                let item = self.number()?;
                let (weight, stock) = self.amounts()?;
                Event::Changed { item, weight, stock }
            }
            "add" => {
                let id = id(self.0.next()?)?;
                let (weight, stock) = self.amounts()?;
                into.record(&Event::Added { id: &id, weight, stock });
                return Some(());
            }
            "remove" => Event::Removed { item: self.number()? },
            "return" => Event::GivenBack { item: self.number()?, count: self.number()? },
            "return-by" => {
                let user = unescaped(self.0.next()?.strip_prefix("user=")?)?;
                self.expect("now")?;
                let (now_ms, item, count) = (self.number()?, self.number()?, self.number()?);
                into.record(&Event::GivenBackBy { user: &user, now_ms, item, count });
                return Some(());
            }
            "advance" => Event::Advanced { now_ms: self.number()? },
            "asked" => return self.asked(into),
            "epoch" => {
                let client_seed = bytes(self.0.next()?)?;
                let after = Secret::new(bytes(self.0.next()?)?.try_into().ok()?);
                into.record(&Event::Epoch { client_seed: &client_seed, after });
                return Some(());
            }
            other => match ending(other) {
                Some(how) => Event::Ended { number: self.number()?, how },
                None => Event::Drew(item(other)?),
            },
        };
        into.record(&event);
        Some(())
    }

    fn asked(&mut self, into: &mut Recorder) -> Option<()> {
        let (mut user, mut request, mut now_ms, mut until_us) = (None, None, 0, None);
        let repeats = loop {
            let word = self.0.next()?;
            if let Some(name) = word.strip_prefix("user=") {
                user = Some(unescaped(name)?);
            } else if let Some(name) = word.strip_prefix("request=") {
                request = Some(unescaped(name)?);
            } else if word == "now" {
                now_ms = self.number()?;
            } else if word == "until" {
                until_us = Some(self.number()?);
            } else {
                break repeats(word)?;
            }
        };
        let by = By { user: user.as_deref(), request: request.as_deref(), now_ms };
        by.check().ok()?;
        let asked = Asked { by, items: self.items()?, repeats, until_us };
        into.record(&Event::Asked(Box::new(Some(asked).filter(Asked::is_own_event)?)));
        Some(())
    }

    fn items(&mut self) -> Option<Vec<Option<u32>>> {
        let count: usize = self.number()?;
        (0..count).map(|_| item(self.0.next()?)).collect()
    }

    fn amounts(&mut self) -> Option<(u64, Stock)> {
        self.expect("weight")?;
        let weight = self.number()?;
        self.expect("stock")?;
        let stock = match self.0.next()? {
            "unlimited" => Stock::Unlimited,
            left => Stock::Limited(left.parse().ok().filter(|&left| left <= AMOUNT_MAX)?),
        };
        Some((weight, stock))
    }

    fn number<N: std::str::FromStr>(&mut self) -> Option<N> {
        self.0.next()?.parse().ok()
    }

    fn expect(&mut self, word: &str) -> Option<()> {
        (self.0.next()? == word).then_some(())
    }
}

#[expect(clippy::option_option, reason = "a draw may have given nothing")]
fn item(word: &str) -> Option<Option<u32>> {
    if word == "-" { Some(None) } else { word.parse().ok().map(Some) }
}

fn bytes(word: &str) -> Option<Vec<u8>> {
    if word == "-" {
        return Some(Vec::new());
    }
    let digits = word.as_bytes().chunks(2);
    digits.map(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()).collect()
}

fn id(word: &str) -> Option<String> {
    if word == "%" {
        return Some(String::new());
    }
    String::from_utf8(unescaped(word)?).ok()
}

fn unescaped(word: &str) -> Option<Vec<u8>> {
    let mut parts = word.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(part.get(2..)?.as_bytes());
    }
    Some(bytes)
}

fn repeats(word: &str) -> Option<Repeats> {
    [Repeats::Allowed, Repeats::Excluded].into_iter().find(|&repeats| repeats_word(repeats) == word)
}

fn repeats_word(repeats: Repeats) -> &'static str {
    match repeats {
        Repeats::Allowed => "allowed",
        Repeats::Excluded => "excluded",
    }
}

fn ending_word(how: Ending) -> &'static str {
    match how {
        Ending::Confirmed => "confirm",
        Ending::Cancelled => "cancel",
        Ending::Expired => "expire",
    }
}

fn ending(word: &str) -> Option<Ending> {
    [Ending::Confirmed, Ending::Cancelled, Ending::Expired].into_iter().find(|&how| ending_word(how) == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::frame::Chain;
    use proptest::prelude::*;

    /// Words of events, in any order, so that some of them are events.
    fn words() -> impl Strategy<Value = String> {
        let keyword = prop::sample::select(&[
            "different",
            "reserve",
            "asked",
            "user=mira",
            "user=",
            "request=a%2",
            "request=7",
            "now",
            "until",
            "allowed",
            "excluded",
            "confirm",
            "cancel",
            "expire",
            "set",
            "weight",
            "stock",
            "unlimited",
            "add",
            "mug",
            "%",
            "remove",
            "return",
            "return-by",
            "advance",
            "epoch",
            "-",
            "ab",
            "0",
            "1",
            "2",
            "4294967295",
            "9223372036854775808",
            "18446744073709551615",
        ]);
        let phrase = prop_oneof![
            keyword.clone().prop_map(str::to_owned),
            (keyword.clone(), keyword.clone())
                .prop_map(|(name, count)| format!("asked {name} allowed {count}")),
            (keyword.clone(), keyword)
                .prop_map(|(weight, stock)| format!("set 0 weight {weight} stock {stock}")),
        ];
        prop::collection::vec(phrase, 0..12).prop_map(|words| words.join(" "))
    }

    /// A frame of the valid events among these bytes.
    fn frame_of(bytes: &[u8]) -> Vec<u8> {
        let mut recorder = Recorder::default();
        Events::new(bytes).flatten().for_each(|event| recorder.record(&event));
        let mut frame = Vec::new();
        Frame { time_us: 9, first_draw: 17, events: recorder.bytes() }.write(Chain::begin(b""), &mut frame);
        frame
    }

    fn again(frame: &[u8]) -> Result<Vec<u8>, FrameError> {
        let (mut words, mut again) = (String::new(), Vec::new());
        write(frame, &mut words)?;
        read(&words, &mut again)?;
        assert!(!words.contains('\n'));
        Ok(again)
    }

    proptest! {
        #[test]
        fn every_frame_comes_back_from_its_words(bytes in prop::collection::vec(0..20_u8, 0..200)) {
            let frame = frame_of(&bytes);
            prop_assert_eq!(again(&frame), Ok(frame));
        }

        #[test]
        fn every_id_comes_back_from_its_word(id in any::<String>()) {
            let mut recorder = Recorder::default();
            recorder.record(&Event::Added { id: &id, weight: 1, stock: Stock::Limited(3) });
            let frame = frame_of(recorder.bytes());
            prop_assert_eq!(again(&frame), Ok(frame));
        }

        #[test]
        fn no_text_is_too_strange_to_be_refused(text in any::<String>(), tail in ".*", words in words()) {
            let chain = "00".repeat(32);
            let framed = [&tail, &words].map(|tail| format!("draws from 1 at 2 chain {chain}: {tail}"));
            for text in framed.iter().chain([&text]) {
                let mut bytes = Vec::new();
                if read(text, &mut bytes).is_ok() {
                    let (frame, _) = Frame::read_stated(&bytes).expect("what is written is a frame");
                    // The text may name an item above the maximum number.
                    if Events::new(frame.events).all(|event| event.is_ok()) {
                        prop_assert_eq!(again(&bytes), Ok(bytes));
                    }
                }
            }
        }
    }

    #[test]
    fn words_say_what_was_done() {
        let mut recorder = Recorder::default();
        let (secret, seed) = (Secret::new([7; 32]), [0xab]);
        for event in [
            Event::Drew(Some(3)),
            Event::Drew(None),
            Event::DrewDifferent { items: vec![Some(1), Some(2)] },
            Event::Reserved { items: vec![Some(4)], repeats: Repeats::Excluded, until_us: 60 },
            Event::Ended { number: 5, how: Ending::Expired },
            Event::Changed { item: 3, weight: 5, stock: Stock::Unlimited },
            Event::Added { id: "a new one", weight: 2, stock: Stock::Limited(9) },
            Event::Removed { item: 1 },
            Event::GivenBack { item: 2, count: 8 },
            Event::GivenBackBy { user: b"mira", now_ms: 4, item: 2, count: 1 },
            Event::Asked(Box::new(Asked {
                by: By { user: Some(b"mira"), request: Some(b"order 7"), now_ms: 5 },
                items: vec![Some(3), None],
                repeats: Repeats::Allowed,
                until_us: Some(90),
            })),
            Event::Asked(Box::new(Asked {
                by: By::default(),
                items: vec![Some(3), None, None],
                repeats: Repeats::Allowed,
                until_us: None,
            })),
            Event::Advanced { now_ms: 77 },
            Event::Epoch { client_seed: &seed, after: secret },
        ] {
            recorder.record(&event);
        }
        let frame = frame_of(recorder.bytes());
        let mut words = String::new();
        write(&frame, &mut words).expect("a frame");
        let said = words.split_once(": ").expect("events").1;
        let expected = "3 - different 2 1 2 reserve 60 excluded 1 4 expire 5 set 3 weight 5 stock unlimited \
                        add a%20new%20one weight 2 stock 9 remove 1 return 2 8 return-by user=mira now 4 2 1 \
                        asked user=mira request=order%207 now 5 until 90 allowed 2 3 - asked allowed 3 3 - - advance 77 epoch ab ";
        assert_eq!(said, format!("{expected}{}", "07".repeat(32)));
        assert!(words.starts_with("draws from 17 at 9 chain "), "{words}");
        assert_eq!(again(&frame), Ok(frame));
    }
}
