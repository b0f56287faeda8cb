//! Bodies that were written to cost as much as they can.
//!
//! Nothing here is timed. A reader whose work grew with the square of the body would need a hundred thousand million
//! steps for each of these.

use super::*;

const DEEP: usize = 5_000_000;
const LONG: usize = 500_000;

fn repeated(start: &str, part: &str, end: &str) -> Bytes {
    let mut body = start.to_owned();
    while body.len() < LONG {
        body.push_str(part);
    }
    body.push_str(end);
    body.into()
}

#[test]
fn deep_bodies_are_refused_at_the_first_bracket_too_many() {
    let limits = Limits::default();
    assert_eq!(
        Envelope::decode(&Bytes::from("[".repeat(DEEP)), &limits),
        Err(DecodeError::NotAnObject { found: "an array" })
    );
    let deep = Bytes::from("{\"a\":".to_owned() + &"[".repeat(DEEP));
    assert_eq!(Envelope::decode(&deep, &limits), Err(DecodeError::TooDeep { at: 5 + 126, limit: 127 }));
    let objects = repeated("", "{\"a\":", "");
    assert_eq!(Envelope::decode(&objects, &limits), Err(DecodeError::TooDeep { at: 5 * 127, limit: 127 }));
    let unlimited = Limits { max_nesting: usize::MAX, ..limits };
    assert_eq!(Envelope::decode(&deep, &unlimited), Err(DecodeError::TooDeep { at: 5 + 126, limit: 127 }));
    let flat = Limits { max_nesting: 1, ..limits };
    let at = body("").find("{\"to\"").unwrap();
    assert_eq!(Envelope::decode(&body("").into(), &flat), Err(DecodeError::TooDeep { at, limit: 1 }));
}

#[test]
fn the_deepest_envelope_that_is_read_is_the_deepest_that_serde_json_reads() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    for (levels, fits) in [(126, true), (127, false)] {
        let payload = RawPayload::from_json(nested(levels).into()).unwrap();
        let envelope = Envelope { payload, ..job() };
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&envelope.encode()).is_ok(), fits);
        assert_eq!(Envelope::decode(&envelope.encode(), &Limits::default()).is_ok(), fits);
        assert_eq!(Limits::default().admit(&envelope.encode()).is_ok(), fits, "what is sent can be read");
    }
}

#[test]
fn long_bodies_of_every_kind_take_linear_work() {
    let limits = Limits { max_unknown_fields: usize::MAX, max_name_bytes: usize::MAX, ..Limits::default() };
    let valid = [
        repeated(r#"{"payload":""#, "\\\"", "\"}"),
        repeated(r#"{"payload":""#, "\\u0000", "\"}"),
        repeated(r#"{"payload":""#, "é", "\"}"),
        repeated(r#"{"payload":"#, "9", "}"),
        repeated(r#"{"payload":"#, " ", "1}"),
        repeated(r#"{"payload":["#, "[],", "1]}"),
        repeated(r#"{"payload":{"#, r#""a":{"b":[]},"#, r#""a":1}}"#),
        repeated("{\"", "a", "\":1}"),
        repeated("{\"", "\\n", "\":1}"),
        repeated(r#"{"correlation_id":""#, "\\n", "\"}"),
        repeated("{", "\"a\":1,", r#""b":1}"#),
    ];
    for body in valid {
        let error = Envelope::decode(&body, &limits).unwrap_err();
        let expected = matches!(
            error,
            DecodeError::Missing { field: "job_id" }
                | DecodeError::TextTooLong { field: "correlation_id", .. }
        );
        assert!(expected, "{error}");
    }
    for part in ["\\", "\"", "\u{1}", "\"a\"", "{}", ",", "e", "-", "\"\\u", "\r\n"] {
        let error = Envelope::decode(&repeated("{", part, ""), &limits).unwrap_err();
        assert!(
            matches!(error, DecodeError::NotJson { .. }) && error.to_string().len() < 200,
            "{part}: {error}"
        );
    }
    let not_utf8 = Bytes::from([b"{\"".as_slice(), &[0xff; 1_000_000]].concat());
    assert_eq!(
        Envelope::decode(&not_utf8, &limits),
        Err(DecodeError::NotJson { at: 2, wanted: "UTF-8", found: Some(0xff) })
    );
}

#[test]
fn every_limit_holds_to_the_byte() {
    let decode = |fields: &str, limits: &Limits| Envelope::decode(&body(fields).into(), limits);
    let fields = r#","abc":1,"correlation_id":"1234","d":2"#;
    let exact = Limits {
        max_bytes: body(fields).len(),
        max_nesting: 2,
        max_unknown_fields: 2,
        max_name_bytes: 3,
        max_job_type_bytes: "send-email".len(),
        max_queue_bytes: "shop.emails".len(),
        max_correlation_id_bytes: 4,
    };
    assert!(decode(fields, &exact).is_ok());
    let at = |part: &str| body(fields).find(part).unwrap();
    let cases = [
        (
            Limits { max_bytes: exact.max_bytes - 1, ..exact },
            DecodeError::TooLarge { bytes: exact.max_bytes, limit: exact.max_bytes - 1 },
        ),
        (Limits { max_nesting: 1, ..exact }, DecodeError::TooDeep { at: at("{\"to"), limit: 1 }),
        (Limits { max_nesting: 0, ..exact }, DecodeError::TooDeep { at: 0, limit: 0 }),
        (Limits { max_unknown_fields: 1, ..exact }, DecodeError::TooManyFields { at: at("\"d\""), limit: 1 }),
        (
            Limits { max_name_bytes: 2, ..exact },
            DecodeError::NameTooLong { at: at("\"abc\""), bytes: 3, limit: 2 },
        ),
        (
            Limits { max_job_type_bytes: 9, ..exact },
            DecodeError::TextTooLong { field: "job_type", at: at("\"send-"), bytes: 10, limit: 9 },
        ),
        (
            Limits { max_queue_bytes: 10, ..exact },
            DecodeError::TextTooLong { field: "queue", at: at("\"shop"), bytes: 11, limit: 10 },
        ),
        (
            Limits { max_correlation_id_bytes: 3, ..exact },
            DecodeError::TextTooLong { field: "correlation_id", at: at("\"1234"), bytes: 4, limit: 3 },
        ),
    ];
    for (limits, expected) in cases {
        assert_eq!(decode(fields, &limits), Err(expected));
    }
    let wide = Limits { max_job_type_bytes: usize::MAX, ..Limits::default() };
    let long = body("").replace("send-email", &"x".repeat(256));
    let error = Envelope::decode(&long.into(), &wide).unwrap_err();
    assert!(
        matches!(error, DecodeError::TextTooLong { field: "job_type", bytes: 256, limit: 255, .. }),
        "{error}"
    );
}

#[test]
fn a_job_is_sent_only_where_every_copy_of_it_can_be_read() {
    let body = job().encode();
    let limits = |max_bytes| Limits { max_bytes, ..Limits::default() };
    assert_eq!(limits(body.len() + 32).admit(&body), Ok(()));
    let refused = DecodeError::TooLarge { bytes: body.len(), limit: body.len() - 1 };
    assert_eq!(limits(body.len() + 31).admit(&body), Err(refused));
    let counted = Envelope { attempt: u32::MAX, deferrals: u32::MAX, priority: u8::MAX, ..job() };
    assert!(counted.encode().len() <= body.len() + 32);
    let short = Limits { max_queue_bytes: 3, ..Limits::default() };
    assert!(matches!(short.admit(&body), Err(DecodeError::TextTooLong { field: "queue", .. })));
}

#[test]
fn an_error_quotes_no_more_than_a_few_bytes_and_no_line_break() {
    let secret = "hunter2-".repeat(40);
    let bodies = [
        body("").replace("send-email", &format!("{secret}\\u0000")),
        body("").replace("\"shop.emails\"", &format!("[\n\"{secret}\"]")),
        body("").replace(ID, &secret),
        body(&format!(",\"{secret}")),
        body(&format!(",\"{secret}\":tru")),
        body(&format!(",{secret}:1")),
        body(&format!(",\"{secret}\":1")).replace("}", ""),
        format!("{{\"{secret}\":\"{secret}\u{1}"),
        secret.clone(),
    ];
    for body in bodies {
        let error = decode(&body).unwrap_err().to_string();
        let quoted = (0..error.len())
            .filter(|start| error.get(*start..start + QUOTE_MAX + 1).is_some_and(|part| body.contains(part)));
        assert_eq!(quoted.count(), 0, "{error}");
        assert!(!error.contains(char::is_control), "{error:?}");
    }
}
