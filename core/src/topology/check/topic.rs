//! The patterns of topic exchanges.

/// Whether a topic exchange routes a message with this key by a binding with this pattern (AMQP 0-9-1, 3.1.3.3):
/// `*` stands for one word, `#` for any number of words, and dots separate words.
///
/// It looks at most at the product of the numbers of words, 128 each.
pub(in crate::topology) fn topic_matches(pattern: &str, key: &str) -> bool {
    let (pattern, key) = (words(pattern), words(key));
    let (mut at, mut word) = (0, 0);
    // The last `#`, and up to where it was tried to reach.
    let mut open: Option<(usize, usize)> = None;
    while word < key.len() {
        match pattern.get(at) {
            Some(&"#") => {
                open = Some((at, word));
                at += 1;
            }
            Some(wanted) if *wanted == "*" || *wanted == key[word] => {
                at += 1;
                word += 1;
            }
            _ => match open {
                Some((hash, reach)) => {
                    open = Some((hash, reach + 1));
                    at = hash + 1;
                    word = reach + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|rest| *rest == "#")
}

/// Whether the text has a word that stands for others. One that has not matches nothing but itself.
pub(super) fn is_pattern(text: &str) -> bool {
    words(text).iter().any(|word| matches!(*word, "*" | "#"))
}

/// RabbitMQ: an empty key has no words.
fn words(text: &str) -> Vec<&str> {
    if text.is_empty() { Vec::new() } else { text.split('.').collect() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_star_is_one_word_and_a_hash_any_number() {
        for (pattern, key) in [
            ("a.b", "a.b"),
            ("a.*", "a.b"),
            ("#", ""),
            ("#", "a.b.c"),
            ("a.#", "a"),
            ("a.#.c", "a.c"),
            ("a.#.c", "a.b.c.c"),
            ("#.b.*.#", "a.b.b.c"),
            ("a..b", "a..b"),
        ] {
            assert!(topic_matches(pattern, key), "{pattern} {key}");
        }
        for (pattern, key) in [
            ("a.*", "a"),
            ("a.*", "a.b.c"),
            ("*", ""),
            ("a.#.c", "a.b"),
            ("", "a"),
            ("a", "a.b"),
            ("a*", "ab"),
        ] {
            assert!(!topic_matches(pattern, key), "{pattern} {key}");
        }
    }

    /// The definition, word by word.
    fn model(pattern: &[&str], key: &[&str]) -> bool {
        match (pattern, key) {
            ([], []) => true,
            (["#", rest @ ..], _) => model(rest, key) || !key.is_empty() && model(pattern, &key[1..]),
            ([first, rest @ ..], [word, words @ ..]) => {
                (*first == "*" || first == word) && model(rest, words)
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn it_matches_as_the_definition_does(pattern in "([ab*#](\\.[ab*#]){0,5})?", key in "([ab](\\.[ab]){0,5})?") {
            prop_assert_eq!(topic_matches(&pattern, &key), model(&words(&pattern), &words(&key)));
        }
    }
}
