//! The body of a message, written by one and read by the other, field by field.

use leveret_core::envelope::{Envelope, JobType, RawPayload};
use leveret_core::text::ShortString;
use leveret_core::time::UnixMillis;
use serde_json::{Value, json};

use super::{leveret, queuey};

const ID: &str = "67e55044-10b1-426f-9247-bb680e5fe0c8";

/// Asserts that both say the same of a job, and gives queuey's payload for a closer look.
pub(crate) fn assert_same(ours: &Envelope, theirs: &queuey_core::Envelope) {
    assert_eq!(ours.job_id().to_string(), theirs.job_id.to_string());
    assert_eq!(ours.job_type().as_str(), theirs.job_type);
    assert_eq!(ours.queue(), theirs.queue);
    assert_eq!(ours.attempt(), theirs.attempt);
    assert_eq!(ours.enqueued_at().0, theirs.enqueued_at_ms);
    assert_eq!(ours.deferrals(), theirs.deferrals);
    assert_eq!(ours.priority(), theirs.priority);
    assert_eq!(ours.correlation_id(), theirs.correlation_id.as_deref());
    let payload: Value = ours.payload().deserialize().expect("both have read it");
    assert_eq!(payload, theirs.payload);
}

fn our_job(payload: &Value) -> Envelope {
    Envelope::new(
        ID.parse().expect("a UUID"),
        JobType::from_static("send-email"),
        ShortString::from_static("shop.emails"),
        UnixMillis(1_700_000_000_000),
        RawPayload::from_serialize(payload).expect("it is JSON"),
    )
}

fn their_job(payload: Value) -> queuey_core::Envelope {
    let mut job = queuey_core::Envelope::raw("send-email", "shop.emails", payload);
    job.job_id = ID.parse().expect("a UUID");
    job.enqueued_at_ms = 1_700_000_000_000;
    job
}

/// Passes a job of queuey's to leveret and back.
fn from_queuey_and_back(theirs: &queuey_core::Envelope) {
    let ours = leveret(&theirs.to_bytes().expect("it is JSON")).expect("leveret reads it");
    assert_same(&ours, theirs);
    assert_eq!(&queuey(&ours.encode()).expect("queuey reads it"), theirs);
}

/// Passes a job of leveret's to queuey and back.
fn from_leveret_and_back(ours: &Envelope) {
    let theirs = queuey(&ours.encode()).expect("queuey reads it");
    assert_same(ours, &theirs);
    assert_eq!(&leveret(&theirs.to_bytes().expect("it is JSON")).expect("leveret reads it"), ours);
}

#[test]
fn the_same_job_is_the_same_bytes() {
    let (ours, theirs) = (our_job(&json!({"to": "ada"})), their_job(json!({"to": "ada"})));
    assert_eq!(ours.encode(), theirs.to_bytes().expect("it is JSON"));
    let ours = ours.with_correlation_id(ShortString::from_static("trace-1")).deferred(Some(10));
    let theirs = theirs.with_correlation_id("trace-1").deferred(10);
    assert_eq!(ours.encode(), theirs.to_bytes().expect("it is JSON"));
}

#[test]
fn the_next_attempt_and_a_deferral_are_counted_alike() {
    let (ours, theirs) = (our_job(&json!(1)), their_job(json!(1)));
    assert_same(&ours.next_attempt(), &theirs.next_attempt());
    assert_same(&ours.deferred(Some(7)), &theirs.deferred(7));
    assert_same(&ours.deferred(Some(7)).next_attempt(), &theirs.deferred(7).next_attempt());
    assert_same(&ours.deferred(None), &theirs.deferred(0));
}

#[test]
fn a_payload_of_every_kind_crosses_unchanged() {
    let kinds = [
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(-1),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1.5),
        json!(f64::MIN_POSITIVE),
        json!(-1e300),
        json!(""),
        json!("Zoë \u{1f407} \u{10ffff}"),
        json!("\u{0}\u{8}\t\n\u{c}\r\u{1f}\"\\/\u{7f}\u{2028}"),
        json!([]),
        json!([null, [1, [2]], {"a": {}}]),
        json!({}),
        json!({"": 1, "\u{0}": 2, "job_id": 3, "payload": {"payload": null}}),
    ];
    for payload in kinds {
        from_leveret_and_back(&our_job(&payload));
        from_queuey_and_back(&their_job(payload));
    }
}

#[test]
fn the_largest_and_the_smallest_of_every_field_cross_unchanged() {
    let mut theirs = their_job(json!({}));
    theirs.job_id = "ffffffff-ffff-ffff-ffff-ffffffffffff".parse().expect("a UUID");
    theirs.job_type = "é".repeat(127);
    theirs.queue = "q".repeat(255);
    theirs.attempt = u32::MAX;
    theirs.enqueued_at_ms = u64::MAX;
    theirs.deferrals = u32::MAX;
    theirs.priority = u8::MAX;
    theirs.correlation_id = Some("\u{1f407}".repeat(63));
    from_queuey_and_back(&theirs);

    theirs.job_id = "00000000-0000-0000-0000-000000000000".parse().expect("a UUID");
    theirs.job_type = "j".to_owned();
    theirs.queue = String::new();
    theirs.attempt = 1;
    theirs.enqueued_at_ms = 0;
    theirs.deferrals = 0;
    theirs.priority = 0;
    theirs.correlation_id = Some(String::new());
    from_queuey_and_back(&theirs);
}

#[test]
fn texts_that_must_be_escaped_cross_unchanged() {
    let every_ascii: String = (1..128_u8).map(char::from).collect();
    let mut theirs = their_job(json!({}));
    theirs.job_type.clone_from(&every_ascii);
    theirs.queue = format!("\0{every_ascii}");
    theirs.correlation_id = Some(format!("\0{every_ascii}\u{85}\u{2028}\u{feff}"));
    from_queuey_and_back(&theirs);
}

#[test]
fn fields_that_are_left_out_have_the_same_defaults() {
    let required = format!(
        r#"{{"job_id":"{ID}","job_type":"send-email","queue":"shop.emails","attempt":2,"enqueued_at_ms":1,"payload":null}}"#
    );
    let optional = [
        ("deferrals", json!(3)),
        ("priority", json!(4)),
        ("correlation_id", json!("trace-1")),
        ("correlation_id", Value::Null),
    ];
    let read = |body: &str| {
        let (ours, theirs) = (leveret(body.as_bytes()), queuey(body.as_bytes()));
        assert_same(&ours.expect("leveret reads it"), &theirs.expect("queuey reads it"));
    };
    read(&required);
    for (name, value) in optional {
        read(&required.replace(r#","payload""#, &format!(r#","{name}":{value},"payload""#)));
    }
}

#[test]
fn every_field_that_one_requires_the_other_requires_too() {
    let body = serde_json::to_value(their_job(json!({}))).expect("it is JSON");
    for name in ["job_id", "job_type", "queue", "attempt", "enqueued_at_ms", "payload"] {
        let mut body = body.clone();
        body.as_object_mut().expect("an object").remove(name).expect("it was there");
        let body = body.to_string();
        assert!(leveret(body.as_bytes()).is_err() && queuey(body.as_bytes()).is_err(), "{name}");
    }
}

#[test]
fn a_field_of_a_later_version_is_no_obstacle_to_either_and_only_leveret_passes_it_on() {
    let body = String::from_utf8(our_job(&json!({})).encode().to_vec()).expect("it is JSON");
    let body = body.replace(r#","payload""#, r#","tenant" : [1.50, {"a":"\u00e9"}],"payload""#);
    let (ours, theirs) = (leveret(body.as_bytes()), queuey(body.as_bytes()));
    let (ours, theirs) = (ours.expect("leveret reads it"), theirs.expect("queuey reads it"));
    assert_same(&ours, &theirs);
    let passed_on = String::from_utf8(ours.next_attempt().encode().to_vec()).expect("it is JSON");
    assert!(passed_on.contains(r#""tenant" : [1.50, {"a":"\u00e9"}]"#), "{passed_on}");
    assert_eq!(queuey(passed_on.as_bytes()).expect("queuey reads it"), theirs.next_attempt());
    let dropped = theirs.next_attempt().to_bytes().expect("it is JSON");
    assert!(!String::from_utf8_lossy(&dropped).contains("tenant"));
}

#[test]
fn a_payload_passes_through_leveret_as_it_was_written_and_through_queuey_as_the_same_value() {
    // More digits than a number of queuey's holds, a name twice, and an order of names.
    let written = r#"{ "z": 1.0e2, "n": 0.1000000000000000055511151231257827, "a": 1, "a": 2 }"#;
    let body = String::from_utf8(our_job(&json!("HERE")).encode().to_vec()).expect("it is JSON");
    let ours = leveret(body.replace(r#""HERE""#, written).as_bytes()).expect("leveret reads it");
    let passed_on = leveret(&ours.next_attempt().encode()).expect("leveret reads it");
    assert_eq!(passed_on.payload().as_bytes(), written);
    let theirs = queuey(&ours.encode()).expect("queuey reads it").next_attempt();
    let passed_on = leveret(&theirs.to_bytes().expect("it is JSON")).expect("leveret reads it");
    assert_eq!(passed_on.payload().as_bytes(), r#"{"a":2,"n":0.1,"z":100.0}"#);
}
