//! Encoded replies of one protocol in another: for an answer that was kept.

use crate::wire::encoded;
use crate::wire::reply::{Protocol, Reply};

/// Appends a complete reply that was encoded in the protocol `from`, in the protocol of `reply`.
/// Returns whether it is complete; if not, nothing is appended. O(bytes), without recursion.
///
/// What RESP2 lacks takes its older form, as [`Reply`] writes it. What was in that form stays in it:
/// a map that was written as an array in RESP2 is an array in RESP3.
pub(crate) fn translate(bytes: &[u8], from: Protocol, reply: &mut Reply) -> bool {
    let is_same = from == reply.protocol();
    let mut translated = Reply::new(reply.protocol());
    let is_complete = encoded::skip(bytes, 0) == Some(bytes.len())
        && (is_same || rewrite(bytes, &mut translated).is_some());
    if is_complete {
        reply.encoded(if is_same { bytes } else { translated.bytes() });
    }
    is_complete
}

/// Translates lines, and strings that follow a line. Returns `None` at one that no reply has.
fn rewrite(bytes: &[u8], reply: &mut Reply) -> Option<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
        let (line, mut behind) = (&rest[..end], &rest[end + 2..]);
        let (kind, head) = line.split_first().map_or((0, line), |(kind, head)| (*kind, head));
        let length = std::str::from_utf8(head).ok().and_then(|head| head.parse::<usize>().ok());
        match (kind, length) {
            (b'$' | b'=', Some(length)) => {
                let (content, after) = behind.split_at_checked(length)?;
                behind = after.strip_prefix(b"\r\n")?;
                // A verbatim string begins with its format: three letters and a colon.
                reply.bulk(if kind == b'=' { content.get(4..)? } else { content });
            }
            (b'_', _) | (b'$' | b'*', None) => reply.null(),
            (b'%', Some(pairs)) => reply.map(pairs),
            (b'~', Some(len)) => reply.set(len),
            (b'>', Some(len)) => reply.push(len),
            (b'#', _) => reply.boolean(head == b"t"),
            (b',' | b'(', _) => reply.bulk(head),
            _ => reply.encoded(&rest[..end + 2]),
        }
        rest = behind;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn both(write: fn(&mut Reply)) -> [Vec<u8>; 2] {
        [Protocol::Resp2, Protocol::Resp3].map(|protocol| {
            let mut reply = Reply::new(protocol);
            write(&mut reply);
            reply.take()
        })
    }

    fn translated(bytes: &[u8], from: Protocol, to: Protocol) -> Option<Vec<u8>> {
        let mut reply = Reply::new(to);
        translate(bytes, from, &mut reply).then(|| reply.take())
    }

    #[test]
    fn what_is_no_reply_is_not_translated() {
        for bytes in ["=2\r\nab\r\n", "*2\r\n:1\r\n$1\r\naxy", "$5\r\na\r\n"] {
            assert_eq!(translated(bytes.as_bytes(), Protocol::Resp3, Protocol::Resp2), None, "{bytes}");
        }
    }

    #[test]
    fn an_answer_of_resp3_is_in_resp2_what_resp2_would_have_had() {
        let writers: [fn(&mut Reply); 12] = [
            Reply::ok,
            Reply::null,
            |reply| reply.integer(-7),
            |reply| reply.bulk(b"a\r\n_\r\nb"),
            |reply| reply.bulk(b""),
            |reply| reply.double(1.5),
            |reply| reply.boolean(false),
            |reply| reply.verbatim("text"),
            |reply| reply.error_text("ERR what is wrong"),
            |reply| {
                reply.map(2);
                (0..4).for_each(|_| reply.bulk(b"x"));
            },
            |reply| {
                reply.set(1);
                reply.array(2);
                reply.null();
                reply.simple("done");
            },
            |reply| reply.array(0),
        ];
        for write in writers {
            let [resp2, resp3] = both(write);
            assert_eq!(translated(&resp3, Protocol::Resp3, Protocol::Resp2), Some(resp2.clone()));
            assert_eq!(translated(&resp2, Protocol::Resp2, Protocol::Resp2), Some(resp2));
        }
    }

    #[test]
    fn nulls_of_resp2_are_those_of_resp3() {
        for null in [b"$-1\r\n", b"*-1\r\n"] {
            assert_eq!(translated(null, Protocol::Resp2, Protocol::Resp3), Some(b"_\r\n".to_vec()));
        }
    }

    #[test]
    fn what_is_incomplete_is_refused() {
        for bytes in [&b""[..], b"*2\r\n:1\r\n", b"$5\r\nabc\r\n", b"+OK", b":1\r\n:2\r\n"] {
            assert_eq!(translated(bytes, Protocol::Resp2, Protocol::Resp3), None);
            assert_eq!(translated(bytes, Protocol::Resp2, Protocol::Resp2), None);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn arbitrary_bytes_are_translated_or_refused(
            bytes in proptest::collection::vec(
                prop_oneof![Just(b'*'), Just(b'$'), Just(b'='), Just(b'1'), Just(b'\r'), Just(b'\n'), any::<u8>()],
                0..60,
            ),
        ) {
            for (from, to) in [(Protocol::Resp2, Protocol::Resp3), (Protocol::Resp3, Protocol::Resp2)] {
                translated(&bytes, from, to);
            }
        }
    }
}
