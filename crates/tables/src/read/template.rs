//! Texts that are made of the columns of a row, such as `temperature:{room}`.

use std::str::FromStr;

/// A text with names of columns in braces; `{{` and `}}` are braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece<String>>);

/// Part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece<C> {
    /// Text as it is.
    Text(String),
    /// Text of a column.
    Column(C),
}

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A brace without its counterpart.
    #[error("a brace is not closed or not opened; write {{{{ or }}}} for the brace itself")]
    Brace,
    /// `{}`.
    #[error("there is no name between the braces")]
    NoName,
}

impl Template {
    /// Returns the template of a column's text.
    #[must_use]
    pub fn column(name: &str) -> Self {
        Self(vec![Piece::Column(name.to_owned())])
    }

    /// Puts for the name of each column what `place` returns.
    pub(super) fn resolve<E>(
        &self,
        mut place: impl FnMut(&str) -> Result<usize, E>,
    ) -> Result<Vec<Piece<usize>>, E> {
        self.0
            .iter()
            .map(|piece| {
                Ok(match piece {
                    Piece::Text(text) => Piece::Text(text.clone()),
                    Piece::Column(name) => Piece::Column(place(name)?),
                })
            })
            .collect()
    }
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let (mut pieces, mut literal, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            let behind = &rest[at + 1..];
            if let Some(after) = behind.strip_prefix(brace) {
                literal.push_str(brace);
                rest = after;
                continue;
            }
            if brace == "}" {
                return Err(TemplateError::Brace);
            }
            let (name, after) = behind.split_once('}').ok_or(TemplateError::Brace)?;
            if name.is_empty() {
                return Err(TemplateError::NoName);
            }
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Column(name.to_owned()));
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal));
        }
        Ok(Self(pieces))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn braces_name_columns() {
        let text = |text: &str| Piece::Text(text.to_owned());
        let column = |name: &str| Piece::Column(name.to_owned());
        for (template, expected) in [
            ("", Ok(vec![])),
            ("kitchen", Ok(vec![text("kitchen")])),
            ("{room}", Ok(vec![column("room")])),
            (
                "a:{room}:{floor}b",
                Ok(vec![text("a:"), column("room"), text(":"), column("floor"), text("b")]),
            ),
            ("{{{room}}}", Ok(vec![text("{"), column("room"), text("}")])),
            ("{room", Err(TemplateError::Brace)),
            ("room}", Err(TemplateError::Brace)),
            ("{}", Err(TemplateError::NoName)),
        ] {
            assert_eq!(template.parse(), expected.map(Template), "{template}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[{}a]{0,12}|.{0,12}") {
            let _ = text.parse::<Template>();
        }
    }
}
