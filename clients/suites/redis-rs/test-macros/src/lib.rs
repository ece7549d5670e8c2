//! `#[async_test]`: an asynchronous function as one test for each runtime, and for each kind of argument that it takes.
//!
//! ```text
//! #[async_test]                                mod name {
//! async fn name(con: impl ConnectionLike) {        fn multiplexed_tokio()   fn multiplexed_smol()
//! ```                                              fn manager_tokio()       fn manager_smol()
//!
//! A function without arguments gives `tokio` and `smol`; one that takes a `bool` gives `yes_…` and `no_…` of both.

use proc_macro::{Delimiter, Group, Spacing, TokenStream, TokenTree};

/// The runtimes: the feature, the variant of the suite's `RuntimeType`, and the end of the test's name.
const RUNTIMES: [(&str, &str, &str); 2] = [("tokio-comp", "Tokio", "tokio"), ("smol-comp", "Smol", "smol")];

/// Makes tests of an asynchronous function; see the crate's description.
#[proc_macro_attribute]
pub fn async_test(_: TokenStream, item: TokenStream) -> TokenStream {
    let function = Function::read(item.clone());
    let tests: String = function.variants().iter().map(|variant| function.tests(variant)).collect();
    let Function { attributes, name, .. } = function;
    let module = format!("{attributes} mod {name} {{ {tests} }}");
    let mut output = item;
    output.extend(module.parse::<TokenStream>().expect("tests are well formed"));
    output
}

/// What the tests of a function have to know of it.
struct Function {
    /// Those of its attributes that decide whether it is compiled.
    attributes: String,
    name: String,
    parameters: String,
}

/// One way to call a function.
struct Variant {
    /// The start of the test's name.
    prefix: &'static str,
    /// A condition on the features.
    condition: &'static str,
    /// What makes the context, if the function does not make its own.
    context: &'static str,
    argument: &'static str,
}

impl Function {
    fn read(item: TokenStream) -> Self {
        let mut attributes = String::new();
        let mut tokens = item.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match &token {
                TokenTree::Punct(mark) if mark.as_char() == '#' && mark.spacing() == Spacing::Alone => {
                    if let Some(TokenTree::Group(attribute)) = tokens.peek()
                        && is_condition(attribute)
                    {
                        attributes.push_str(&format!("#{attribute}"));
                    }
                }
                TokenTree::Ident(word) if word.to_string() == "fn" => {
                    let name = tokens.next().expect("a function has a name").to_string();
                    let parameters = tokens
                        .find_map(|token| match token {
                            TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {
                                Some(group)
                            }
                            _ => None,
                        })
                        .expect("a function has parameters");
                    return Self { attributes, name, parameters: parameters.stream().to_string() };
                }
                _ => {}
            }
        }
        panic!("async_test stands before a function");
    }

    fn variants(&self) -> Vec<Variant> {
        let variant = |prefix, context, argument| Variant { prefix, condition: "all()", context, argument };
        let parameters = &self.parameters;
        if parameters.trim().is_empty() {
            vec![variant("", "", "")]
        } else if parameters.contains("impl") {
            let context = "let context = crate::support::TestContext::new();";
            vec![
                variant("multiplexed_", context, "context.async_connection().await.unwrap()"),
                Variant {
                    condition: r#"feature = "connection-manager""#,
                    ..variant("manager_", context, "context.client.get_connection_manager().await.unwrap()")
                },
            ]
        } else if parameters.contains("bool") {
            vec![variant("yes_", "", "true"), variant("no_", "", "false")]
        } else {
            panic!("async_test does not know what to give for {parameters}");
        }
    }

    /// The tests of one variant, one for each runtime.
    fn tests(&self, variant: &Variant) -> String {
        let Variant { prefix, condition, context, argument } = variant;
        let name = &self.name;
        RUNTIMES
            .iter()
            .map(|(feature, runtime, suffix)| {
                format!(
                    r#"
                    #[test]
                    #[cfg(all(feature = "{feature}", {condition}))]
                    fn {prefix}{suffix}() {{
                        {context}
                        let run = async move {{ super::{name}({argument}).await }};
                        crate::support::block_on_all(run, crate::support::RuntimeType::{runtime});
                    }}
                    "#
                )
            })
            .collect()
    }
}

fn is_condition(attribute: &Group) -> bool {
    attribute.stream().into_iter().next().is_some_and(|token| token.to_string() == "cfg")
}
