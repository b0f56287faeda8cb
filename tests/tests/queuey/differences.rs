//! What one takes and the other does not, on purpose. [`super::generated`] finds what is missing here.

use leveret_core::envelope::DecodeError;

use super::{leveret, queuey};

/// Why leveret refuses a body that queuey takes. It moves it to `q.dead` as it is, so that nothing is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stricter {
    /// An attempt is counted from 1. queuey never writes 0.
    AttemptZero,
    /// The job type is the property `type` as well, a short string of AMQP. queuey cuts it there.
    JobTypeNoShortString,
    /// The name of a queue is a short string of AMQP: no broker has a longer one.
    QueueNoShortString,
    /// The length of a correlation id is bounded, far above that of an id.
    CorrelationIdTooLong,
    /// An array of the fields in order is no envelope. queuey takes it, and never writes it.
    Array,
    /// The envelope's depth is bounded, in fields that nobody knows too: queuey bounds that of the payload alone.
    Depth,
    /// The number of unknown fields is bounded.
    ManyUnknownFields,
    /// The length of an unknown field's name is bounded.
    NameTooLong,
    /// The length of a body is bounded at what RabbitMQ 4 takes.
    Length,
}

impl Stricter {
    /// Reads it from leveret's error; `None` for one that is not on the list.
    pub(crate) fn of(error: &DecodeError) -> Option<Self> {
        match error {
            DecodeError::Field { field: "attempt", found, .. } if found == "0" => Some(Self::AttemptZero),
            DecodeError::Field { field: "job_type", .. }
            | DecodeError::TextTooLong { field: "job_type", .. } => Some(Self::JobTypeNoShortString),
            DecodeError::TextTooLong { field: "queue", .. } => Some(Self::QueueNoShortString),
            DecodeError::TextTooLong { field: "correlation_id", .. } => Some(Self::CorrelationIdTooLong),
            DecodeError::NameTooLong { .. } => Some(Self::NameTooLong),
            DecodeError::NotAnObject { found: "an array" } => Some(Self::Array),
            DecodeError::TooDeep { .. } => Some(Self::Depth),
            DecodeError::TooManyFields { .. } => Some(Self::ManyUnknownFields),
            DecodeError::TooLarge { .. } => Some(Self::Length),
            _ => None,
        }
    }
}

/// Why queuey refuses a body that leveret takes. leveret does not look into payloads and unknown fields: that they are
/// JSON is enough for it, and what they mean is between those who write and read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looser {
    /// Half of a surrogate pair in a text, `"\ud800"`. No payload that is written from Rust has one.
    LoneSurrogate,
    /// A number beyond the range of a double, `1e400`. No payload that is written from Rust has one.
    NumberOutOfRange,
}

impl Looser {
    /// Reads it from queuey's error; `None` for one that is not on the list.
    pub(crate) fn of(error: &queuey_core::Error) -> Option<Self> {
        let text = error.to_string();
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        if has(&["surrogate", "unexpected end of hex escape"]) {
            Some(Self::LoneSurrogate)
        } else if has(&["number out of range"]) {
            Some(Self::NumberOutOfRange)
        } else {
            None
        }
    }
}

/// A body with these values, and with this after the payload.
fn body(changes: &[(&str, &str)], after: &str) -> String {
    let mut fields = [
        ("job_id", r#""67e55044-10b1-426f-9247-bb680e5fe0c8""#),
        ("job_type", r#""send-email""#),
        ("queue", r#""shop.emails""#),
        ("attempt", "2"),
        ("enqueued_at_ms", "1700000000000"),
        ("deferrals", "0"),
        ("priority", "0"),
        ("correlation_id", "null"),
        ("payload", "{}"),
    ];
    for (name, value) in changes {
        fields.iter_mut().find(|(field, _)| field == name).expect("there is such a field").1 = value;
    }
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}{after}}}", fields.join(","))
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}

#[test]
fn leveret_is_stricter_than_queuey_in_these_and_says_where() {
    let long = quoted(&"é".repeat(128));
    let deep = format!("{}{}", "[".repeat(128), "]".repeat(128));
    let many: String = (0..65).map(|number| format!(r#","later{number}":1"#)).collect();
    let array = r#"["67e55044-10b1-426f-9247-bb680e5fe0c8","send-email","shop.emails",1,1,0,0,null,{}]"#;
    let heavy = quoted(&"x".repeat(16 * 1024 * 1024));
    let cases = [
        (body(&[("attempt", "0")], ""), Stricter::AttemptZero),
        (body(&[("job_type", r#""""#)], ""), Stricter::JobTypeNoShortString),
        (body(&[("job_type", r#""a\u0000""#)], ""), Stricter::JobTypeNoShortString),
        (body(&[("job_type", &long)], ""), Stricter::JobTypeNoShortString),
        (body(&[("queue", &long)], ""), Stricter::QueueNoShortString),
        (body(&[("correlation_id", &quoted(&"x".repeat(65_537)))], ""), Stricter::CorrelationIdTooLong),
        (array.to_owned(), Stricter::Array),
        (body(&[], &format!(r#","later":{deep}"#)), Stricter::Depth),
        (body(&[], &many), Stricter::ManyUnknownFields),
        (body(&[], &format!(r#","{}":1"#, "x".repeat(256))), Stricter::NameTooLong),
        (body(&[("payload", &heavy)], ""), Stricter::Length),
    ];
    for (body, why) in cases {
        let refused = leveret(body.as_bytes()).expect_err("leveret refuses it");
        assert_eq!(Stricter::of(&refused), Some(why), "{refused}");
        assert!(queuey(body.as_bytes()).is_ok(), "{why:?}: queuey takes it");
    }
}

#[test]
fn leveret_is_looser_than_queuey_in_what_it_does_not_look_into() {
    let cases = [
        (body(&[("payload", r#""\ud800""#)], ""), Looser::LoneSurrogate),
        (body(&[("payload", r#""\udc00\ud800""#)], ""), Looser::LoneSurrogate),
        (body(&[("payload", "[1e400]")], ""), Looser::NumberOutOfRange),
    ];
    for (body, why) in cases {
        assert!(leveret(body.as_bytes()).is_ok(), "{body}: {:?}", leveret(body.as_bytes()));
        let refused = queuey(body.as_bytes()).expect_err("queuey refuses it");
        assert_eq!(Looser::of(&refused), Some(why), "{body}: {refused}");
    }
}

#[test]
fn what_looks_like_a_number_a_uuid_or_a_default_is_the_same_to_both() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let agreed = [
        (body(&[("attempt", "4294967296")], ""), false),
        (body(&[("attempt", "1.0")], ""), false),
        (body(&[("attempt", "1e0")], ""), false),
        (body(&[("attempt", "-0")], ""), false),
        (body(&[("attempt", "\"1\"")], ""), false),
        (body(&[("attempt", " 1\n")], ""), true),
        (body(&[("enqueued_at_ms", "18446744073709551615")], ""), true),
        (body(&[("enqueued_at_ms", "18446744073709551616")], ""), false),
        (body(&[("deferrals", "null")], ""), false),
        (body(&[("priority", "256")], ""), false),
        (body(&[("priority", "null")], ""), false),
        (body(&[("job_id", r#""67e5504410b1426f9247bb680e5fe0c8""#)], ""), true),
        (body(&[("job_id", r#""67E55044-10B1-426F-9247-BB680E5FE0C8""#)], ""), true),
        (body(&[("job_id", r#""urn:uuid:67e55044-10b1-426f-9247-bb680e5fe0c8""#)], ""), true),
        (body(&[("job_id", r#""{67e55044-10b1-426f-9247-bb680e5fe0c8}""#)], ""), true),
        (body(&[("job_id", r#""67e55044""#)], ""), false),
        (body(&[("payload", "null")], ""), true),
        (body(&[("payload", &nested(126))], ""), true),
        (body(&[("payload", &nested(127))], ""), false),
        (body(&[], r#","attempt":2"#), false),
        (body(&[], r#","payload":{}"#), false),
        (body(&[], r#","\ud800":1"#), false),
        (body(&[("correlation_id", &quoted(&"é".repeat(128)))], ""), true),
        (body(&[], r#","later":1,"later":2"#), true),
        (body(&[], "").replace("job_type", r"job\u005ftype"), true),
        (body(&[], "").replace("job_type", "Job_type"), false),
        (format!("\n\t {} \r\n", body(&[], "")), true),
        (format!("\u{feff}{}", body(&[], "")), false),
        (format!("{}{{}}", body(&[], "")), false),
    ];
    for (body, taken) in agreed {
        let (ours, theirs) = (leveret(body.as_bytes()), queuey(body.as_bytes()));
        assert_eq!((ours.is_ok(), theirs.is_ok()), (taken, taken), "{body}: {ours:?}, {theirs:?}");
    }
}
