use proptest::prelude::*;

use super::*;
use crate::message::DeliveryMode;
use crate::table::Value;

const ID: &str = "67e55044-10b1-426f-9247-bb680e5fe0c8";

fn decode(body: &str) -> Result<Envelope, DecodeError> {
    Envelope::decode(&Bytes::copy_from_slice(body.as_bytes()), &Limits::default())
}

fn body(fields: &str) -> String {
    format!(
        r#"{{"job_id":"{ID}","job_type":"send-email","queue":"shop.emails","attempt":2,"enqueued_at_ms":1700000000000{fields},"payload":{{"to":"ada"}}}}"#
    )
}

fn job() -> Envelope {
    Envelope::new(
        ID.parse().unwrap(),
        JobType::from_static("send-email"),
        ShortString::from_static("shop.emails"),
        UnixMillis(1_700_000_000_000),
        RawPayload::from_serialize(&serde_json::json!({"to": "ada"})).unwrap(),
    )
}

fn text(envelope: &Envelope) -> String {
    String::from_utf8(envelope.encode().to_vec()).unwrap()
}

#[test]
fn an_envelope_is_written_as_queuey_1_writes_it() {
    // What queuey-core 1.1 wrote for the same job.
    assert_eq!(
        text(&job().with_correlation_id(ShortString::from_static("trace-1"))),
        format!(
            r#"{{"job_id":"{ID}","job_type":"send-email","queue":"shop.emails","attempt":1,"enqueued_at_ms":1700000000000,"deferrals":0,"priority":0,"correlation_id":"trace-1","payload":{{"to":"ada"}}}}"#
        )
    );
}

#[test]
fn an_envelope_from_before_deferrals_priorities_and_correlation_ids_is_read_with_their_defaults() {
    let envelope = decode(&body("")).unwrap();
    assert_eq!(envelope.job_id().to_string(), ID);
    assert_eq!(envelope.job_type().as_str(), "send-email");
    assert_eq!((envelope.queue(), envelope.attempt()), ("shop.emails", 2));
    assert_eq!(envelope.enqueued_at(), UnixMillis(1_700_000_000_000));
    assert_eq!((envelope.deferrals(), envelope.priority(), envelope.correlation_id()), (0, 0, None));
    assert_eq!(envelope.payload().as_bytes(), r#"{"to":"ada"}"#);
    assert_eq!(decode(&body(r#","correlation_id":null"#)).unwrap().correlation_id(), None);
}

#[test]
fn white_space_around_a_payload_is_no_part_of_it() {
    let payload = RawPayload::from_json(Bytes::from_static(b" {\"to\" : \"ada\"}\n")).unwrap();
    assert_eq!(payload.as_bytes(), r#"{"to" : "ada"}"#);
    let job = Envelope::new(
        ID.parse().unwrap(),
        JobType::from_static("a"),
        ShortString::EMPTY,
        UnixMillis(1),
        payload,
    );
    assert_eq!(Envelope::decode(&job.encode(), &Limits::default()), Ok(job));
}

#[test]
fn fields_that_this_version_does_not_know_survive_a_retry_byte_for_byte() {
    let unknown = r#","tenant" : [1.50, {"a":"\u00e9"}] ,"caf\u00e9":1E2,"tenant":null"#;
    let retried = text(&decode(&body(unknown)).unwrap().next_attempt());
    assert!(
        retried.ends_with(r#","tenant":[1.50, {"a":"\u00e9"}],"caf\u00e9":1E2,"tenant":null}"#),
        "{retried}"
    );
}

#[test]
fn the_payload_is_a_slice_of_the_body_as_it_was_written() {
    let json = body(r#","x":1"#).replace(r#"{"to":"ada"}"#, " { \"n\": 1.0e0 } ");
    let bytes = Bytes::from(json);
    let envelope = Envelope::decode(&bytes, &Limits::default()).unwrap();
    assert_eq!(envelope.payload().as_bytes(), r#"{ "n": 1.0e0 }"#);
    assert!(bytes.as_ptr_range().contains(&envelope.payload().as_bytes().as_ptr()));
}

#[test]
fn a_known_field_may_be_written_with_escapes() {
    let json = body("").replace("job_type", r"job\u005ftype").replace("send-email", r"send\u002demail");
    assert_eq!(decode(&json).unwrap().job_type().as_str(), "send-email");
}

#[test]
fn what_is_no_envelope_is_refused_with_the_field_and_the_place() {
    let cases = [
        ("", "empty"),
        ("   ", "empty"),
        ("{", "not JSON: EOF"),
        ("null", "null"),
        ("[]", "an array"),
        ("{} {}", "trailing characters"),
        ("{}", "`job_id` is missing"),
        ("AMQP", "not JSON"),
    ];
    for (json, expected) in cases {
        let error = decode(json).unwrap_err().to_string();
        assert!(error.contains(expected), "{json:?}: {error}");
    }
    let not_utf8 = Bytes::from_static(b"{\"a\":\"\xff\xfe\"}");
    assert!(matches!(Envelope::decode(&not_utf8, &Limits::default()), Err(DecodeError::NotJson { .. })));
}

#[test]
fn a_field_of_the_wrong_kind_is_named_and_hardly_quoted() {
    let long = "x".repeat(300);
    let changed = [
        ("2,", "-1,", "`attempt`"),
        ("2,", "0,", "`attempt`"),
        ("2,", "1e99,", "`attempt`"),
        ("2,", "\"3\",", "`attempt`"),
        ("2,", "4294967296,", "`attempt`"),
        ("2,", "null,", "`attempt`"),
        (ID, "no-uuid", "`job_id`"),
        ("send-email", "", "`job_type`"),
        ("send-email", r"\u0000", "`job_type`"),
        ("send-email", &long, "`job_type`"),
        ("shop.emails", &long, "`queue`"),
        ("\"shop.emails\"", "7", "`queue`"),
        ("\"attempt\"", "\"attempt\":1,\"attempt\"", "`attempt` occurs twice"),
        ("\"payload\"", "\"priority\":256,\"payload\"", "`priority`"),
        ("\"payload\"", "\"deferrals\":1.5,\"payload\"", "`deferrals`"),
    ];
    for (from, to, expected) in changed {
        let error = decode(&body("").replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(expected), "{to}: {error}");
        assert!(error.len() < 200, "{error}");
    }
    let at = body("").find("2,").unwrap();
    let error = decode(&body("").replacen("2,", "-1,", 1)).unwrap_err();
    assert_eq!(
        error,
        DecodeError::Field {
            field: "attempt",
            at,
            expected: "a whole number from 1 to 4294967295",
            found: ShortString::from_static("-1")
        }
    );
}

#[test]
fn every_field_but_the_newer_ones_is_required() {
    for field in ["job_id", "job_type", "queue", "attempt", "enqueued_at_ms", "payload"] {
        let json = body("").replace(&format!("\"{field}\""), "\"other\"");
        assert_eq!(decode(&json), Err(DecodeError::Missing { field }));
    }
}

#[test]
fn a_hostile_body_costs_no_more_than_the_limits_say() {
    let deep = Bytes::from("{\"a\":".to_owned() + &"[".repeat(5_000_000));
    assert_eq!(
        Envelope::decode(&deep, &Limits::default()),
        Err(DecodeError::TooDeep { at: 5 + 127, limit: 128 })
    );
    let limits = Limits { max_bytes: 100, ..Limits::default() };
    assert_eq!(Envelope::decode(&deep, &limits), Err(DecodeError::TooLarge { bytes: 5_000_005, limit: 100 }));
    let limits = Limits { max_unknown_fields: 2, ..Limits::default() };
    let wide = Bytes::from(body(r#","a":1,"b":2,"c":3"#));
    assert_eq!(Envelope::decode(&wide, &limits), Err(DecodeError::TooManyFields { limit: 2 }));
}

#[test]
fn brackets_in_texts_do_not_count_as_nesting() {
    let brackets = r#""\\\"[[[["#.to_owned() + &"[{".repeat(500) + "\"";
    let envelope = decode(&body("").replace(r#"{"to":"ada"}"#, &brackets)).unwrap();
    assert!(envelope.payload().deserialize::<String>().unwrap().starts_with("\\\"[[[["));
}

#[test]
fn a_retry_counts_the_attempt_and_joins_the_back() {
    let retried = job().with_priority(10).deferred(Some(10)).next_attempt();
    assert_eq!((retried.attempt(), retried.deferrals(), retried.priority()), (2, 1, 0));
    let json = body("").replace("\"attempt\":2", "\"attempt\":4294967295");
    assert_eq!(decode(&json).unwrap().next_attempt().attempt(), u32::MAX);
}

#[test]
fn a_deferral_keeps_the_attempt_and_takes_the_top_priority_where_there_is_one() {
    let deferred = job().deferred(Some(9));
    assert_eq!((deferred.attempt(), deferred.deferrals(), deferred.priority()), (1, 1, 9));
    assert_eq!(deferred.deferred(None).priority(), 0);
}

#[test]
fn a_payload_that_does_not_fit_its_type_is_an_error_of_bounded_length() {
    let payload = RawPayload::from_serialize(&"x".repeat(10_000)).unwrap();
    let error = payload.deserialize::<u32>().unwrap_err().to_string();
    assert!(error.contains("invalid type") && error.len() < 400, "{error}");
    assert!(RawPayload::from_json(Bytes::from_static(b"{} 1")).is_err());
    assert_eq!(payload.deserialize::<&str>().unwrap().len(), 10_000);
}

#[test]
fn the_message_carries_what_people_and_brokers_look_at() {
    let envelope = job().with_correlation_id(ShortString::from_static("trace-1")).deferred(Some(10));
    let message = message(&envelope, ShortString::from_static("shop.emails"), Some(10));
    assert_eq!((message.exchange.as_str(), message.routing_key.as_str()), ("", "shop.emails"));
    assert!(message.mandatory);
    assert_eq!(message.body, envelope.encode());
    let properties = message.properties;
    assert_eq!(properties.content_type.as_deref(), Some("application/json"));
    assert_eq!(properties.delivery_mode, Some(DeliveryMode::Persistent));
    assert_eq!(properties.message_id.as_deref(), Some(ID));
    assert_eq!(properties.kind.as_deref(), Some("send-email"));
    assert_eq!(properties.correlation_id.as_deref(), Some("trace-1"));
    assert_eq!(properties.priority, Some(10));
    assert_eq!(properties.headers.get("x-attempt"), Some(&Value::I64(1)));
    assert_eq!(properties.headers.get("x-deferrals"), Some(&Value::I64(1)));
    assert_eq!(properties.expiration, None);
}

#[test]
fn a_job_id_is_a_random_uuid_that_reads_back() {
    let id = JobId::from_random(u128::MAX);
    assert_eq!(id.to_string(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    assert_eq!(id.to_string().parse(), Ok(id));
    assert_eq!("nope".parse::<JobId>(), Err(JobIdError));
}

#[test]
fn a_job_type_always_fits_the_type_property() {
    assert_eq!(JobType::new(""), Err(JobTypeError::Empty));
    assert_eq!(JobType::new("a\0"), Err(JobTypeError::ZeroByte));
    assert_eq!(JobType::new("é".repeat(128)), Err(JobTypeError::TooLong { bytes: 256 }));
    assert!(JobType::new("é".repeat(127)).is_ok());
}

fn envelopes() -> impl Strategy<Value = Envelope> {
    let ids = (any::<u128>(), "[^\0]{1,50}", "\\PC{0,20}|.{0,20}");
    let numbers = (1..=u32::MAX, any::<u64>(), any::<u32>(), any::<u8>());
    let rest = (proptest::option::of("(?s).{0,20}"), "(?s).{0,200}");
    (ids, numbers, rest).prop_map(|((id, kind, queue), numbers, (correlation_id, payload))| {
        let (attempt, enqueued_at, deferrals, priority) = numbers;
        Envelope {
            job_id: JobId::from_random(id),
            job_type: JobType::new(kind).unwrap(),
            queue: ShortString::new(queue).unwrap(),
            attempt,
            enqueued_at: UnixMillis(enqueued_at),
            deferrals,
            priority,
            correlation_id: correlation_id.map(|id| ShortString::new(id).unwrap()),
            payload: RawPayload::from_serialize(&payload).unwrap(),
            unknown: vec![(Bytes::from_static(b"\"later\""), Bytes::from_static(b"[1, {}]"))],
        }
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back_and_is_json_for_everyone(envelope in envelopes()) {
        let body = envelope.encode();
        prop_assert_eq!(&Envelope::decode(&body, &Limits::default()).unwrap(), &envelope);
        let tree: serde_json::Value = serde_json::from_slice(&body).unwrap();
        prop_assert_eq!(tree["job_type"].as_str(), Some(envelope.job_type().as_str()));
        prop_assert_eq!(tree["queue"].as_str(), Some(envelope.queue()));
        prop_assert_eq!(tree["enqueued_at_ms"].as_u64(), Some(envelope.enqueued_at().0));
    }

    #[test]
    fn any_bytes_are_an_envelope_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Envelope::decode(&bytes.into(), &Limits::default());
    }

    #[test]
    fn a_broken_envelope_is_an_error_or_another_envelope_that_reads_back(
        at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()
    ) {
        let mut bytes = body(r#","tenant":[1,"\\"]"#).into_bytes();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        if let Ok(envelope) = Envelope::decode(&bytes.into(), &Limits::default()) {
            prop_assert_eq!(&Envelope::decode(&envelope.encode(), &Limits::default()).unwrap(), &envelope);
        }
    }
}
