use proptest::prelude::*;

use super::*;

fn read(text: &str) -> (String, Option<String>, Option<String>, Option<String>) {
    let found = Mismatch::from_reply_text(text).unwrap();
    (found.argument, found.name, found.wanted, found.found)
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn advice(argument: &str, queue: &str) -> String {
    let text = format!(
        "PRECONDITION_FAILED - inequivalent arg '{argument}' for queue '{queue}' in vhost '/': received the value '10' \
         of type 'long' but current is none"
    );
    Mismatch::from_reply_text(&text).unwrap().to_string()
}

#[test]
fn differing_values_are_read() {
    assert_eq!(
        read(
            "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q.deferred.5' in vhost '/': \
             received '5000' but current is '1000'"
        ),
        ("x-message-ttl".into(), some("q.deferred.5"), some("5000"), some("1000"))
    );
    assert_eq!(
        read(
            "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost 'a/b': \
             received 'true' but current is 'false'"
        ),
        ("durable".into(), some("q"), some("true"), some("false"))
    );
}

#[test]
fn a_value_on_one_side_only_is_read_with_its_type() {
    assert_eq!(
        read(
            "PRECONDITION_FAILED - inequivalent arg 'x-max-priority' for queue 'q' in vhost '/': \
             received the value '10' of type 'long' but current is none"
        ),
        ("x-max-priority".into(), some("q"), some("10"), some("none"))
    );
    assert_eq!(
        read(
            "PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': \
             received none but current is the value 'quorum' of type 'longstr'"
        ),
        ("x-queue-type".into(), some("q"), some("none"), some("quorum"))
    );
}

#[test]
fn an_exchange_is_told_from_a_queue() {
    let text = "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'x' in vhost '/': received 'topic' but \
                current is 'direct'";
    let mismatch = Mismatch::from_reply_text(text).unwrap();
    assert_eq!(mismatch.of, MismatchOf::Exchange);
    assert_eq!(
        mismatch.to_string(),
        "the exchange \"x\" exists with other properties: type is direct, declared was topic; describe the exchange as \
         it is, use another name, or delete it and bind its queues again"
    );
}

#[test]
fn a_queue_name_with_quotes_does_not_confuse_the_reader() {
    let name = "it's 'q' in vhost 'x': received 'y'";
    let text = format!(
        "PRECONDITION_FAILED - inequivalent arg 'x-expires' for queue '{name}' in vhost '/': \
         received '2' but current is '1'"
    );
    assert_eq!(read(&text), ("x-expires".into(), some(name), some("2"), some("1")));
}

#[test]
fn a_value_that_reads_like_the_text_does_not_confuse_the_reader() {
    assert_eq!(
        read(
            "inequivalent arg 'x-dead-letter-routing-key' for queue 'q' in vhost '/': \
             received '5 but current is 1' but current is 'none but current is 2'"
        ),
        (
            "x-dead-letter-routing-key".into(),
            some("q"),
            some("5 but current is 1"),
            some("none but current is 2")
        )
    );
}

#[test]
fn a_text_cut_by_the_broker_still_names_the_argument() {
    let name = "q".repeat(220);
    let text = format!("PRECONDITION_FAILED - inequivalent arg 'x-expires' for queue '{name}");
    let cut = format!("{}...", &text[..252]);
    assert_eq!(read(&cut), ("x-expires".into(), None, None, None));
    let half =
        "inequivalent arg 'x-expires' for queue 'q' in vhost '/': received '2000' but current is '10...";
    assert_eq!(read(half), ("x-expires".into(), some("q"), some("2000"), None));
}

#[test]
fn other_texts_are_no_mismatch() {
    for text in ["", "NOT_FOUND - no queue 'q' in vhost '/'", "inequivalent arg '", "PRECONDITION_FAILED"] {
        assert_eq!(Mismatch::from_reply_text(text), None);
    }
}

#[test]
fn the_message_says_how_to_give_an_existing_queue_priorities() {
    let advice = advice("x-max-priority", "q");
    assert!(advice.contains("x-max-priority is none, declared was 10"), "{advice}");
    for step in ["stop what enqueues", "drain", "delete", "new name"] {
        assert!(advice.contains(step), "{step}: {advice}");
    }
}

#[test]
fn the_message_says_how_to_change_the_type_of_a_queue() {
    let advice = advice("x-queue-type", "q");
    assert!(advice.contains("new name") && advice.contains("dead letters"), "{advice}");
}

#[test]
fn a_waiting_queue_that_an_older_system_left_is_recognised() {
    let ours = advice("x-dead-letter-exchange", "q.retry");
    assert!(ours.contains("Give the waiting queue another name"), "{ours}");
    let another = advice("x-dead-letter-exchange", "q.retries");
    assert!(another.contains("describe the queue as it is"), "{another}");
}

#[test]
fn a_hold_that_something_else_declared_is_recognised() {
    for argument in ["x-message-ttl", "x-queue-type", "x-max-priority"] {
        for name in ["q.deferred.5000", "q.held.5000"] {
            let hold = advice(argument, name);
            assert!(hold.contains("follows from its name"), "{hold}");
            assert!(!hold.contains("Describe it as it is"), "nobody describes a hold: {hold}");
        }
    }
}

#[test]
fn a_dead_letter_queue_that_something_else_declared_is_recognised() {
    let dead = advice("x-delivery-limit", "q.dead");
    assert!(dead.contains("delete it once it is empty, or give dead letters another suffix"), "{dead}");
    assert!(!dead.contains("describe the queue as it is"), "nobody describes it: {dead}");
}

/// A value as RabbitMQ prints it where both sides have one, and where only one has.
fn printed(value: Option<&str>, both: bool) -> String {
    match value {
        None => "none".to_owned(),
        Some(value) if both => format!("'{value}'"),
        Some(value) => format!("the value '{value}' of type 'longstr'"),
    }
}

proptest! {
    #[test]
    fn what_rabbitmq_writes_is_read_back(
        exchange: bool,
        argument in "[a-z-]{1,20}",
        name in "(\\PC{0,40}|it's '[a-z]' in vhost '[a-z]': received '[a-z]')",
        vhost in "[a-z/]{1,9}",
        wanted in proptest::option::of("([a-z0-9. ]{0,9}|none but current is 1)"),
        found in proptest::option::of("([a-z0-9.' ]{0,9}|none but current is '1)"),
    ) {
        prop_assume!(wanted.is_some() || found.is_some());
        let both = wanted.is_some() && found.is_some();
        let (wanted, found) = (wanted.as_deref(), found.as_deref());
        let text = format!(
            "PRECONDITION_FAILED - inequivalent arg '{argument}' for {} '{name}' in vhost '{vhost}': received {} but \
             current is {}",
            if exchange { "exchange" } else { "queue" },
            printed(wanted, both),
            printed(found, both),
        );
        let mismatch = Mismatch::from_reply_text(&text).unwrap();
        prop_assert_eq!(mismatch.of == MismatchOf::Exchange, exchange);
        prop_assert_eq!(mismatch.name, Some(name));
        prop_assert_eq!(mismatch.argument, argument);
        prop_assert_eq!(mismatch.wanted.as_deref(), wanted.or(Some("none")));
        prop_assert_eq!(mismatch.found.as_deref(), found.or(Some("none")));
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in "(inequivalent arg ')?\\PC{0,80}('| for queue '|': received ){0,3}\\PC{0,20}") {
        if let Some(mismatch) = Mismatch::from_reply_text(&text) {
            prop_assert!(!mismatch.to_string().is_empty());
        }
    }
}
