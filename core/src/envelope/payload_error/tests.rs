use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::*;
use crate::envelope::{QUOTE_MAX, RawPayload};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "reading it is what fails")]
struct Order {
    customer: u32,
    state: State,
    #[serde(default)]
    lines: Vec<Line>,
    #[serde(default)]
    note: Note,
    #[serde(default)]
    way: Option<Way>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Open,
    Paid,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "reading it is what fails")]
struct Line(u32, bool);

#[derive(Debug, Deserialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "reading it is what fails")]
enum Way {
    Post(u8),
    Courier(bool),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Debug, Deserialize)]
enum Never {}

/// A text whose type complains in words of its own, with the text in them.
#[derive(Debug, Default)]
struct Note;

impl<'de> Deserialize<'de> for Note {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Err(D::Error::custom(format!("not a note: {text}")))
    }
}

fn error<T: DeserializeOwned + fmt::Debug>(json: &str) -> String {
    let payload = RawPayload::from_json(Bytes::copy_from_slice(json.as_bytes())).unwrap();
    payload.deserialize::<T>().unwrap_err().to_string()
}

#[test]
fn it_says_what_the_type_wants_and_where_and_leaves_out_what_was_found() {
    let cases = [
        (r#"{"state":"open"}"#, "at line 1, column 16: missing field `customer`"),
        (r#"{"customer":1,"customer":2}"#, "at line 1, column 24: duplicate field `customer`"),
        (r#"{"customer":"hunter2"}"#, "at line 1, column 21: invalid type: string, expected u32"),
        ("{\n\"customer\":-7}", "at line 2, column 13: invalid value: integer, expected u32"),
        (r#"{"customer":1.75}"#, "at line 1, column 16: invalid type: floating point, expected u32"),
        (r#"{"customer":null}"#, "at line 1, column 16: invalid type: null, expected u32"),
        (r#"{"customer":["hunter2"]}"#, "at line 1, column 12: invalid type: sequence, expected u32"),
        (r#"["hunter2"]"#, "at line 1, column 10: invalid type: string, expected u32"),
        (r#""hunter2""#, "at line 1, column 9: invalid type: string, expected struct Order"),
        (
            r#"{"hunter2":1}"#,
            "at line 1, column 10: unknown field, expected one of `customer`, `state`, `lines`, `note`, `way`",
        ),
        (r#"{"state":"hunter2"}"#, "at line 1, column 18: unknown variant, expected `open` or `paid`"),
        (
            r#"{"lines":[[1]]}"#,
            "at line 1, column 13: invalid length 1, expected tuple struct Line with 2 elements",
        ),
        (r#"{"way":"hunter2"}"#, "at line 1, column 17: data did not match any variant of untagged enum Way"),
        (r#"{"note":"hunter2"}"#, "at line 1, column 18: not a note: hunter2"),
    ];
    for (json, expected) in cases {
        assert_eq!(
            error::<Order>(json),
            format!("the payload is not the JSON of its type: {expected}"),
            "{json}"
        );
    }
    assert!(
        error::<Nothing>(r#"{"a`, expected hunter2":1}"#).ends_with(": unknown field, there are no fields")
    );
    assert!(
        error::<Never>(r#""a`, expected hunter2""#).ends_with(": unknown variant, there are no variants")
    );
    assert!(!error::<BTreeMap<u8, u8>>(r#"{"hunter2":1}"#).contains("hunter2"));
}

#[test]
fn a_text_that_is_no_json_is_told_from_one_that_is_not_of_the_type() {
    let error = RawPayload::from_json(Bytes::from_static(b"{\"a\":hunter2}")).unwrap_err();
    assert_eq!(error.to_string(), "the payload is no JSON: at line 1, column 6: expected value");
}

#[test]
fn a_value_that_cannot_be_written_says_so_in_its_own_words() {
    struct Locked;
    impl Serialize for Locked {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("the order is locked by another writer"))
        }
    }
    let error = RawPayload::from_serialize(&Locked).unwrap_err().to_string();
    assert_eq!(error, "the payload cannot be written as JSON: the order is locked by another writer");
    let error = RawPayload::from_serialize(&BTreeMap::from([((1, 2), 3)])).unwrap_err().to_string();
    assert_eq!(error, "the payload cannot be written as JSON: key must be a string");
}

#[test]
fn a_type_with_very_many_fields_is_cut_and_the_place_is_not() {
    let text =
        without_value(&format!("unknown field `hunter2`, expected one of {}", "`field`, ".repeat(100)));
    let json = serde_json::from_str::<u8>("\"a\"").unwrap_err();
    let error = PayloadError::new("is not the JSON of its type", &json, &text).to_string();
    assert!(
        error.starts_with("the payload is not the JSON of its type: at line 1, column 3: unknown field, ")
    );
    assert!(error.len() < 400, "{error}");
}

proptest! {
    #[test]
    fn no_more_than_a_few_bytes_of_a_payload_are_quoted(
        secret in "[a-z`\", éx]{30,60}",
        lure in prop_oneof![
            Just(String::new()), Just("`, expected ".to_owned()), Just("\", expected ".to_owned()),
            Just(" at line 1 column 1".to_owned()), Just("`, there are no fields".to_owned()),
        ],
        field in prop_oneof![
            Just("customer"), Just("state"), Just("lines"), Just("note"), Just("way"), Just(""),
        ],
    ) {
        let secret = format!("{secret}{lure}{secret}");
        let text = serde_json::to_string(&secret).unwrap();
        let json = if field.is_empty() { format!("{{{text}:1}}") } else { format!("{{\"{field}\":{text}}}") };
        for error in [error::<Order>(&json), error::<Nothing>(&json), error::<Never>(&text), error::<Vec<u8>>(&text)] {
            let quoted = |part: &str| secret.contains(part) || text.contains(part);
            for start in 0..error.len() {
                let part = error.get(start..start + QUOTE_MAX + 1);
                prop_assert!(!part.is_some_and(quoted), "{}", error);
            }
            prop_assert!(error.len() < 400);
        }
    }
}
