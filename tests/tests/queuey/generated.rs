//! Envelopes of every kind, passed between the two.

use leveret_core::envelope::{Envelope, JobId, JobType, RawPayload};
use leveret_core::text::ShortString;
use leveret_core::time::UnixMillis;
use proptest::prelude::*;
use serde_json::Value;

use super::differences::{Looser, Stricter};
use super::envelopes::assert_same;
use super::{leveret, queuey};

/// JSON values of every kind. Doubles are those of a few digits: serde_json reads others a last place off, unless it
/// is built to be exact.
fn payloads() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
        "(?s).{0,30}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map("(?s).{0,8}", inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

type Fields = (u128, String, String, (u32, u64, u32, u8), Option<String>, Value);

fn fields() -> impl Strategy<Value = Fields> {
    (
        any::<u128>(),
        "(?s)[^\0]{1,60}",
        "(?s).{0,60}",
        (1..=u32::MAX, any::<u64>(), any::<u32>(), any::<u8>()),
        proptest::option::of("(?s).{0,60}"),
        payloads(),
    )
}

fn theirs((id, job_type, queue, numbers, correlation_id, payload): Fields) -> queuey_core::Envelope {
    let mut job = queuey_core::Envelope::raw(job_type, queue, payload);
    job.job_id = JobId::from_random(id).to_string().parse().expect("a UUID");
    (job.attempt, job.enqueued_at_ms, job.deferrals, job.priority) = numbers;
    job.correlation_id = correlation_id;
    job
}

/// As many deferrals and attempts as the steps of a program of leveret's make.
fn ours((id, job_type, queue, numbers, correlation_id, payload): Fields, steps: &[Step]) -> Envelope {
    let mut job = Envelope::new(
        JobId::from_random(id),
        JobType::new(job_type).expect("it is short"),
        ShortString::new(queue).expect("it is short"),
        UnixMillis(numbers.1),
        RawPayload::from_serialize(&payload).expect("it is JSON"),
    )
    .with_priority(numbers.3);
    if let Some(id) = correlation_id {
        job = job.with_correlation_id(ShortString::new(id).expect("it is short"));
    }
    for step in steps {
        job = step.of_leveret(&job);
    }
    job
}

/// What becomes of a job that is not done.
#[derive(Clone, Copy, Debug)]
enum Step {
    Retry,
    Defer(u8),
}

impl Step {
    fn any() -> impl Strategy<Value = Self> {
        prop_oneof![Just(Self::Retry), any::<u8>().prop_map(Self::Defer)]
    }

    fn of_leveret(self, job: &Envelope) -> Envelope {
        match self {
            Self::Retry => job.next_attempt(),
            Self::Defer(top) => job.deferred(Some(top)),
        }
    }

    fn of_queuey(self, job: &queuey_core::Envelope) -> queuey_core::Envelope {
        match self {
            Self::Retry => job.next_attempt(),
            Self::Defer(top) => job.deferred(top),
        }
    }
}

/// Bodies that are envelopes but for a few fields, which hold anything.
fn nearly_envelopes() -> impl Strategy<Value = String> {
    let values = prop_oneof![
        payloads().prop_map(|value| value.to_string()),
        (0..=300_usize).prop_map(|length| Value::from("é".repeat(length)).to_string()),
        (120..=135_usize).prop_map(|levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels))),
        "-?[0-9]{1,21}",
        "-?[0-9]{1,3}(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,3})?",
        r#""(\\u[0-9a-f]{4}|\\[nrtbf"/]|[a-z]){0,4}""#,
    ];
    let names = prop_oneof![
        proptest::sample::select(vec![
            "job_id",
            "job_type",
            "queue",
            "attempt",
            "enqueued_at_ms",
            "deferrals",
            "priority",
            "correlation_id",
            "payload",
        ])
        .prop_map(str::to_owned),
        r"[a-z]{1,3}(\\u[0-9a-f]{4})?",
    ];
    let changes = proptest::collection::vec((names, proptest::option::of(values)), 0..4);
    (fields(), changes).prop_map(|(fields, changes)| {
        let Value::Object(fields) = serde_json::to_value(theirs(fields)).expect("it is JSON") else {
            unreachable!("an envelope is an object")
        };
        let mut fields: Vec<(String, String)> =
            fields.into_iter().map(|(name, value)| (name, value.to_string())).collect();
        for (name, value) in changes {
            let known = fields.iter().position(|(field, _)| *field == name);
            match (known, value) {
                (Some(at), Some(value)) => fields[at].1 = value,
                (Some(at), None) => drop(fields.remove(at)),
                (None, value) => fields.push((name, value.unwrap_or_else(|| "{}".to_owned()))),
            }
        }
        let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", fields.join(","))
    })
}

proptest! {
    #[test]
    fn what_queuey_writes_leveret_reads_and_passes_on(
        fields in fields(), steps in proptest::collection::vec(Step::any(), 0..4)
    ) {
        let mut theirs = theirs(fields);
        // Near the largest number queuey's own addition overflows.
        theirs.attempt = theirs.attempt.min(u32::MAX - 4);
        theirs.deferrals = theirs.deferrals.min(u32::MAX - 4);
        let body = theirs.to_bytes().expect("it is JSON");
        let mut ours = leveret(&body).expect("leveret reads it");
        assert_same(&ours, &theirs);
        prop_assert_eq!(ours.payload().as_bytes(), &theirs.payload.to_string());
        for step in steps {
            (ours, theirs) = (step.of_leveret(&ours), step.of_queuey(&theirs));
            prop_assert_eq!(&queuey(&ours.encode()).expect("queuey reads it"), &theirs);
        }
    }

    #[test]
    fn what_leveret_writes_queuey_reads_and_passes_on(
        fields in fields(), steps in proptest::collection::vec(Step::any(), 0..4)
    ) {
        let ours = ours(fields, &steps);
        let theirs = queuey(&ours.encode()).expect("queuey reads it");
        assert_same(&ours, &theirs);
        prop_assert_eq!(leveret(&theirs.to_bytes().expect("it is JSON")), Ok(ours));
    }

    /// The two agree on every body, or the difference is one of the listed ones.
    #[test]
    fn what_both_read_is_the_same_and_what_only_one_reads_is_a_known_difference(body in nearly_envelopes()) {
        match (leveret(body.as_bytes()), queuey(body.as_bytes())) {
            (Ok(ours), Ok(theirs)) => assert_same(&ours, &theirs),
            (Err(refused), Ok(_)) => prop_assert!(Stricter::of(&refused).is_some(), "{}: {}", refused, body),
            (Ok(_), Err(refused)) => prop_assert!(Looser::of(&refused).is_some(), "{}: {}", refused, body),
            (Err(_), Err(_)) => {}
        }
    }
}
