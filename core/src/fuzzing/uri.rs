//! AMQP URIs, and lists of them.

use crate::connection::{Uri, UriList};

/// Two passwords that nobody should be able to tell apart by what is printed.
const SECRETS: [&str; 2] = ["hunter2", "Abraxas"];

/// Any text is read or refused. What is read is the same when it was printed and parsed again, but for its password, and
/// when it went through the builder. Nothing that is printed depends on the password.
///
/// # Panics
///
/// Where that does not hold.
pub fn body(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    check(&text);
    check(&format!("amqp://{text}"));
    check(&format!("amqps://{text}"));

    // What comes before the sign is in the password, and what comes after it is the rest of the URI.
    let (password, rest) = text.split_once('|').unwrap_or((&text, "host"));
    for uri in [
        |secret: &str, password: &str, rest: &str| {
            format!("amqps://user:{password}{secret}{password}@{rest}")
        },
        |secret: &str, _: &str, rest: &str| format!("amqp://user:{secret}@{rest}"),
        |secret: &str, _: &str, rest: &str| format!("amqp://one, amqp://user:{secret}@{rest}"),
    ] {
        let [one, other] = SECRETS.map(|secret| printed(&uri(secret, password, rest)));
        assert_eq!(one, other, "a password is shown");
    }
}

fn check(text: &str) {
    if let Ok(uri) = Uri::parse(text) {
        let printed = uri.to_string();
        let again = Uri::parse(&printed);
        assert_eq!(again, Ok(uri.clone().without_password()), "{printed} is another URI");
        let built = uri.clone().into_builder().build();
        assert_eq!(built, Ok(uri.clone()), "the builder makes another URI");
        // It may have a comma before a scheme, so that it is a list as well; what was printed has none.
        let list = UriList::parse(&printed);
        assert_eq!(list, Ok(UriList::from(uri.without_password())), "{printed} is another list");
    }
    if let Ok(list) = UriList::parse(text) {
        assert_eq!(
            UriList::parse(&list.to_string()).map(|list| list.iter().count()),
            Ok(list.iter().count())
        );
    }
}

/// What may be read of a URI.
fn printed(text: &str) -> String {
    let uri = match Uri::parse(text) {
        Ok(uri) => format!("{uri:?}{uri}{:?}", uri.connection_config()),
        Err(error) => format!("{error:?}{error}"),
    };
    match UriList::parse(text) {
        Ok(_) => uri,
        Err(error) => format!("{uri}{error:?}{error}"),
    }
}
