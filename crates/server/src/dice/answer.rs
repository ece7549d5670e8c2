//! Reads RESP3 answers that commands have written. The bytes are the server's own.

/// One answer, or the head of a nested one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Answer<'a> {
    /// A string of any kind.
    Text(&'a [u8]),
    /// An error with its code.
    Error(&'a [u8]),
    Integer(i64),
    Double(f64),
    Truth(bool),
    Null,
    /// This many answers follow: elements, or the alternating keys and values of a map.
    Many(usize),
}

/// Answers in the order of output. Nesting is flattened: heads and elements follow each other.
#[derive(Debug, Clone)]
pub(super) struct Answers<'a> {
    rest: &'a [u8],
}

impl<'a> Answers<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Answers<'a> {
        Answers { rest: bytes }
    }

    /// Returns the first error among all answers.
    pub(super) fn first_error(&self) -> Option<&'a [u8]> {
        self.clone().find_map(|answer| if let Answer::Error(text) = answer { Some(text) } else { None })
    }

    fn line(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|byte| *byte == b'\r')?;
        let (line, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest.get(2..)?;
        Some(line)
    }

    fn body(&mut self, length: usize) -> Option<&'a [u8]> {
        let (body, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest.get(2..)?;
        Some(body)
    }
}

impl<'a> Iterator for Answers<'a> {
    type Item = Answer<'a>;

    /// Returns the next answer; `None` at the end or at an unknown form.
    fn next(&mut self) -> Option<Answer<'a>> {
        let (kind, text) = self.line()?.split_first()?;
        let answer = match kind {
            b'+' => Answer::Text(text),
            b'-' => Answer::Error(text),
            b':' => Answer::Integer(number(text)?),
            b',' => Answer::Double(number(text)?),
            b'#' => Answer::Truth(text == b"t"),
            b'_' => Answer::Null,
            b'$' => Answer::Text(self.body(number(text)?)?),
            // A verbatim text starts with its format and a colon.
            b'=' => Answer::Text(self.body(number(text)?)?.get(4..)?),
            b'*' | b'~' | b'>' => Answer::Many(number(text)?),
            b'%' => Answer::Many(number::<usize>(text)?.checked_mul(2)?),
            _ => return None,
        };
        Some(answer)
    }
}

fn number<N: std::str::FromStr>(text: &[u8]) -> Option<N> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tidemark_engine::{Protocol, Reply};

    fn written(write: impl FnOnce(&mut Reply)) -> Vec<u8> {
        let mut reply = Reply::new(Protocol::Resp3);
        write(&mut reply);
        reply.take()
    }

    #[test]
    fn every_form_of_answer_is_read() {
        let bytes = written(|reply| {
            reply.ok();
            reply.error_text("ERR no");
            reply.integer(-7);
            reply.double(f64::INFINITY);
            reply.double(1e300);
            reply.boolean(true);
            reply.null();
            reply.bulk(b"a\r\nb");
            reply.verbatim("text");
            reply.map(2);
            reply.set(3);
        });
        let answers: Vec<Answer<'_>> = Answers::of(&bytes).collect();
        assert_eq!(
            answers,
            [
                Answer::Text(b"OK"),
                Answer::Error(b"ERR no"),
                Answer::Integer(-7),
                Answer::Double(f64::INFINITY),
                Answer::Double(1e300),
                Answer::Truth(true),
                Answer::Null,
                Answer::Text(b"a\r\nb"),
                Answer::Text(b"text"),
                Answer::Many(4),
                Answer::Many(3),
            ]
        );
        assert_eq!(Answers::of(&bytes).first_error(), Some(b"ERR no".as_slice()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in "[-+:$*%=_,#~>0-9a-c\r\n]{0,60}") {
            let count = Answers::of(bytes.as_bytes()).count();
            prop_assert!(count <= bytes.len());
        }
    }
}
