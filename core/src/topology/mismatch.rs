//! What RabbitMQ says when a queue exists with other properties than the ones declared.

use std::fmt;

/// A queue that exists with other properties, read from the text of a 406 (`PRECONDITION_FAILED`).
///
/// The text is for people, so reading it is a best effort: a field that cannot be found is `None`. RabbitMQ
/// cuts its texts at 255 bytes, and a long queue name leaves no room for the rest.
///
/// Its `Display` says what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// The property that differs, such as `x-message-ttl` or `durable`.
    pub argument: String,
    /// The queue.
    pub queue: Option<String>,
    /// What the declaration asked for; `none` where it did not name the property.
    pub wanted: Option<String>,
    /// What the queue has; `none` where it has no such property.
    pub found: Option<String>,
}

impl Mismatch {
    /// Reads the reply text of a channel that RabbitMQ closed with 406; `None` for any other text.
    #[must_use]
    pub fn from_reply_text(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once("inequivalent arg '")?;
        let (argument, rest) = rest.split_once('\'')?;
        // A queue's name may hold quotes and spaces, so its end is looked for from the back.
        let (name, values) = match rest.rsplit_once("': received ") {
            Some((name, values)) => (name, Some(values)),
            None => (rest, None),
        };
        let queue = name
            .strip_prefix(" for queue '")
            .and_then(|name| name.rsplit_once("' in vhost '"))
            .map(|(queue, _)| queue.to_owned());
        let (wanted, found) = match values.and_then(sides) {
            Some((wanted, found)) => (value(wanted), value(found)),
            None => (None, None),
        };
        Some(Self { argument: argument.to_owned(), queue, wanted, found })
    }
}

/// What stands on either side of ` but current is `, which a value in quotes may hold as well.
fn sides(values: &str) -> Option<(&str, &str)> {
    const BETWEEN: &str = " but current is ";
    let wanted = match values.strip_prefix("none") {
        Some(_) => "none".len(),
        None => values.find("' but current is ")? + 1,
    };
    let (wanted, rest) = values.split_at(wanted);
    Some((wanted, rest.strip_prefix(BETWEEN)?))
}

/// `none`, `'5000'` or `the value '10' of type 'long'`; `None` when the text was cut.
fn value(text: &str) -> Option<String> {
    if text == "none" {
        return Some(text.to_owned());
    }
    let quoted = text.strip_prefix("the value ").unwrap_or(text).strip_prefix('\'')?;
    let (value, rest) = quoted.rsplit_once("' of type '").unwrap_or((quoted, ""));
    if rest.is_empty() { value.strip_suffix('\'').map(str::to_owned) } else { Some(value.to_owned()) }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unknown = "something else";
        let argument = &self.argument;
        match &self.queue {
            Some(queue) => write!(f, "the queue {queue:?}")?,
            None => f.write_str("the queue")?,
        }
        write!(
            f,
            " exists with other properties: {argument} is {}, declared was {}; ",
            self.found.as_deref().unwrap_or(unknown),
            self.wanted.as_deref().unwrap_or(unknown),
        )?;
        f.write_str(match argument.as_str() {
            "x-max-priority" => {
                "the priorities of an existing queue cannot be changed, not by a policy either: describe the queue \
                 as it is, or use a new name and drain the old queue"
            }
            "x-queue-type" => {
                "the type of an existing queue cannot be changed (on a virtual host whose default type is quorum, \
                 queues declared without a type are quorum): use a new name and drain the old queue"
            }
            _ => "describe the queue as it is, use another name, or delete the queue once it is empty",
        })
    }
}

impl std::error::Error for Mismatch {}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, Option<String>, Option<String>, Option<String>) {
        let found = Mismatch::from_reply_text(text).unwrap();
        (found.argument, found.queue, found.wanted, found.found)
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
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
        for text in ["", "NOT_FOUND - no queue 'q' in vhost '/'", "inequivalent arg '", "PRECONDITION_FAILED"]
        {
            assert_eq!(Mismatch::from_reply_text(text), None);
        }
    }

    #[test]
    fn the_message_says_what_to_do_about_priorities() {
        let text =
            "inequivalent arg 'x-max-priority' for queue 'q' in vhost '/': received '10' but current is none";
        let advice = Mismatch::from_reply_text(text).unwrap().to_string();
        assert!(advice.contains("x-max-priority is none, declared was 10"), "{advice}");
        assert!(advice.contains("new name"), "{advice}");
    }
}
