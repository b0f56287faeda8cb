//! The scanner and `serde_json` side by side: on texts that are JSON, that nearly are, and that are not at all.

use super::super::oracle::{copies_read_back, decode_agrees_with_serde_json, scanner_agrees_with_serde_json};
use super::super::scan::plain_end;
use super::*;

/// What JSON is made of, and what it must not be made of.
const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "\\",
    "/",
    "\\u00e9",
    "\\ud83d\\ude00",
    "\\ud800",
    "\\u12",
    "\\u00e",
    "\\n",
    "\\x",
    "a",
    "true",
    "false",
    "null",
    "nul",
    "0",
    "1",
    "9",
    "-",
    "+",
    ".",
    "e",
    "E",
    "1.5e-3",
    "-0",
    "01",
    " ",
    "\t",
    "\n",
    "\r",
    "\u{b}",
    "\u{1}",
    "\u{7f}",
    "é",
    "\u{feff}",
    "\"\"",
    "\"a\":",
    "\"payload\":",
    "[]",
    "{}",
    "abcdefgh",
];

fn nearly_json() -> impl Strategy<Value = String> {
    let inside =
        proptest::collection::vec(prop::sample::select(TOKENS), 0..24).prop_map(|tokens| tokens.concat());
    let frames = prop::sample::select(vec![("", ""), ("[", "]"), ("\"", "\""), ("{\"a\":", "}"), (" ", "1")]);
    (frames, inside).prop_map(|((open, close), inside)| format!("{open}{inside}{close}"))
}

/// A value, blanks included.
fn json() -> impl Strategy<Value = String> {
    let blank = || prop::sample::select(vec!["", " ", "\n\t", "\r"]);
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "null",
            "true",
            "false",
            "0",
            "-0",
            "1e5",
            "-12.75E+2",
            "\"\"",
            "[]",
            "{}"
        ])
        .prop_map(str::to_owned),
        any::<f64>().prop_map(|number| serde_json::to_string(&number).unwrap()),
        "(?s).{0,12}".prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    leaf.prop_recursive(6, 60, 5, move |inner| {
        let element =
            (blank(), inner, blank()).prop_map(|(before, value, after)| format!("{before}{value}{after}"));
        let member = ("[a-z\\\\\"é]{0,9}", blank(), element.clone()).prop_map(|(name, blank, value)| {
            format!("{}{blank}:{value}", serde_json::to_string(&name).unwrap())
        });
        prop_oneof![
            proptest::collection::vec(element, 1..5).prop_map(|all| format!("[{}]", all.join(","))),
            proptest::collection::vec(member, 1..5).prop_map(|all| format!("{{{}}}", all.join(","))),
        ]
    })
}

/// Bodies in any order of fields, with what is missing, twice, out of range, escaped and unknown.
fn bodies() -> impl Strategy<Value = String> {
    const FIELDS: &[(&str, &[&str])] = &[
        (
            "job_id",
            &["\"67e55044-10b1-426f-9247-bb680e5fe0c8\"", "\"67E5504410B1426F9247BB680E5FE0C8\"", "\"nope\""],
        ),
        ("job_type", &["\"send-email\"", "\"send\\u002demail\"", "\"\"", "\"\\u0000\"", "7"]),
        ("queue", &["\"q\"", "\"a.queue.with.a.name.above.the.inline.length\"", "\"\\ud800\"", "null"]),
        ("attempt", &["1", "4294967295", "4294967296", "0", "-1", "1.0", "\"1\"", "null"]),
        ("enqueued_at_ms", &["0", "18446744073709551615", "18446744073709551616", "1e3"]),
        ("deferrals", &["0", "7", "null", "-0"]),
        ("priority", &["255", "256", "[]"]),
        ("correlation_id", &["null", "\"\"", "\"\\n\"", "\"0af7651916cd43dd8448eb211c80319c\"", "false"]),
        ("payload", &["null", "{\"a\":[1,2]}", "\"\\ud800\"", "1.0e0"]),
        ("later", &["[1, {}]", "null"]),
        ("job_\\u0069d", &["\"67e55044-10b1-426f-9247-bb680e5fe0c8\""]),
        ("\\ud800", &["1"]),
    ];
    let usual = Just(
        FIELDS.iter().map(|(name, values)| format!("\"{name}\":{}", values[0])).take(10).collect::<Vec<_>>(),
    );
    let odd = prop::sample::select(FIELDS)
        .prop_flat_map(|(name, values)| (Just(name), prop::sample::select(values)))
        .prop_map(|(name, value)| format!("\"{name}\" : {value}"));
    (usual, proptest::option::of((any::<prop::sample::Index>(), odd, any::<bool>()))).prop_map(
        |(mut fields, odd)| {
            if let Some((at, odd, add)) = odd {
                let index = at.index(fields.len());
                if add {
                    fields.insert(index, odd);
                } else {
                    let name = odd.split(' ').next().unwrap().to_owned() + ":";
                    match fields.iter().position(|field| field.starts_with(&name)) {
                        Some(same) => fields[same] = odd,
                        None => drop(fields.remove(index)),
                    }
                }
            }
            format!("{{{}}}", fields.join(","))
        },
    )
}

#[test]
fn a_number_is_read_up_to_the_last_that_fits_and_never_wraps() {
    let read = |number: &str| {
        let text = body("").replace("1700000000000", number);
        Envelope::decode(&text.into(), &Limits::default()).map(|envelope| envelope.enqueued_at().0)
    };
    for fits in [0, 9, 9_999_999_999_999_999_999, 10_000_000_000_000_000_000, u64::MAX] {
        assert_eq!(read(&fits.to_string()), Ok(fits));
    }
    let above = [u128::from(u64::MAX) + 1, 1 << 64 | 7, 100_000_000_000_000_000_000, 1 << 80, u128::MAX];
    for above in above.map(|number| number.to_string()).into_iter().chain(["1".repeat(1_000)]) {
        assert!(matches!(read(&above), Err(DecodeError::Field { field: "enqueued_at_ms", .. })), "{above}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn what_is_nearly_json_is_judged_as_serde_json_judges_it(text in nearly_json()) {
        scanner_agrees_with_serde_json(text.as_bytes());
        decode_agrees_with_serde_json(text.as_bytes());
    }

    #[test]
    fn json_of_every_shape_is_found_from_end_to_end(text in json()) {
        scanner_agrees_with_serde_json(text.as_bytes());
        let envelope = decode(&body("").replace(r#"{"to":"ada"}"#, &text)).unwrap();
        prop_assert_eq!(envelope.payload().as_bytes(), text.trim_matches([' ', '\t', '\n', '\r']));
        let unknown = text.trim();
        let copy = decode(&body(&format!(",\"x\":{unknown}"))).unwrap().next_attempt().encode();
        let kept = format!(",\"x\":{unknown}}}");
        prop_assert!(copy.ends_with(kept.as_bytes()));
    }

    #[test]
    fn a_damaged_text_is_judged_as_serde_json_judges_it(
        mut text in json(), at in any::<prop::sample::Index>(), token in prop::sample::select(TOKENS)
    ) {
        let mut at = at.index(text.len() + 1);
        while !text.is_char_boundary(at) { at -= 1 }
        text.insert_str(at, token);
        scanner_agrees_with_serde_json(text.as_bytes());
    }

    #[test]
    fn bodies_read_as_the_derived_struct_reads_them(body in bodies()) {
        decode_agrees_with_serde_json(body.as_bytes());
        copies_read_back(body.as_bytes());
    }

    #[test]
    fn any_bytes_are_an_envelope_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        scanner_agrees_with_serde_json(&bytes);
        decode_agrees_with_serde_json(&bytes);
        copies_read_back(&bytes);
    }

    #[test]
    fn a_broken_envelope_is_an_error_or_another_envelope_that_reads_back(
        at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()
    ) {
        let mut bytes = body(r#","tenant":[1,"\\"],"correlation_id":"0af7651916cd43dd8448eb211c80319c""#).into_bytes();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        decode_agrees_with_serde_json(&bytes);
        copies_read_back(&bytes);
    }

    #[test]
    fn eight_bytes_at_once_are_judged_as_one_by_one(
        bytes in proptest::collection::vec(prop_oneof![8 => any::<u8>(), 1 => Just(b'"'), 1 => 0x1f..0x24_u8], 0..40)
    ) {
        let special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
        prop_assert_eq!(plain_end(&bytes, 0), bytes.iter().position(special).unwrap_or(bytes.len()));
    }
}

#[test]
fn every_pair_and_triple_of_tokens_is_judged_as_serde_json_judges_it() {
    for first in TOKENS {
        for second in TOKENS {
            for third in TOKENS {
                scanner_agrees_with_serde_json(format!("{first}{second}{third}").as_bytes());
            }
            scanner_agrees_with_serde_json(format!("[1,{first}{second}]").as_bytes());
        }
    }
}
