//! The texts in which RabbitMQ says that a queue is another one than declared.

use super::input::Lines;
use crate::topology::Mismatch;

/// The input is read as any text, and once more as the parts of one that RabbitMQ could have written.
///
/// Of any text, what is read is part of the text, and the advice is no longer than text and advice together can be.
/// Of RabbitMQ's text every part is read back as it was, whatever the queue is called; and where the text was cut, a
/// part that is still found is the right one.
///
/// # Panics
///
/// Where that does not hold.
pub fn body(bytes: &[u8]) {
    any_text(&String::from_utf8_lossy(bytes));
    rabbitmq_text(&mut Lines::new(bytes));
}

fn any_text(text: &str) {
    let Some(read) = Mismatch::from_reply_text(text) else { return };
    let parts = [Some(&read.argument), read.queue.as_ref(), read.wanted.as_ref(), read.found.as_ref()];
    for part in parts.into_iter().flatten() {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
    // Escapes of a queue's name take up to ten bytes for one.
    assert!(read.to_string().len() <= 512 + 10 * text.len());
}

/// Line by line: argument, queue, virtual host, type and value declared, type and value found.
fn rabbitmq_text(lines: &mut Lines<'_>) {
    let argument = plain(&lines.text());
    let queue = lines.text();
    let virtual_host = plain(&lines.text());
    let (wanted, found) = (Side::read(lines), Side::read(lines));
    let text = format!(
        "PRECONDITION_FAILED - inequivalent arg '{argument}' for queue '{queue}' in vhost '{virtual_host}': received \
         {} but current is {}",
        wanted.text, found.text
    );
    let expected = Mismatch {
        argument,
        queue: Some(queue.to_string()),
        wanted: Some(wanted.value),
        found: Some(found.value),
    };
    assert_eq!(Mismatch::from_reply_text(&text).as_ref(), Some(&expected), "{text}");

    // In a text that was cut, a name that imitates what follows it is taken for that.
    if queue.contains('\'') {
        return;
    }
    for (end, _) in text.char_indices() {
        let cut = format!("{}...", &text[..end]);
        let Some(read) = Mismatch::from_reply_text(&cut) else { continue };
        assert_eq!(read.argument, expected.argument, "{cut}");
        assert!(read.queue.is_none() || read.queue == expected.queue, "{read:?} from {cut}");
        assert!(read.wanted.is_none() || read.wanted == expected.wanted, "{read:?} from {cut}");
        assert!(read.found.is_none() || read.found == expected.found, "{read:?} from {cut}");
    }
}

/// One of the two values that differ.
struct Side {
    value: String,
    text: String,
}

impl Side {
    /// A line with a type (empty: RabbitMQ names none) and one with a value (empty: there is none).
    fn read(lines: &mut Lines<'_>) -> Self {
        let (kind, value) = (plain(&lines.text()), plain(&lines.text()));
        let text = match (kind.as_str(), value.as_str()) {
            (_, "") => return Self { value: "none".to_owned(), text: "none".to_owned() },
            ("", value) => format!("'{value}'"),
            (kind, value) => format!("the value '{value}' of type '{kind}'"),
        };
        Self { value, text }
    }
}

/// Text without quotes, which RabbitMQ does not escape, and without the beginning of the words between two parts, such
/// as `: received `: behind the quote before it, it would be taken for them.
fn plain(text: &str) -> String {
    text.replace('\'', "").trim_start_matches([':', ' ']).to_owned()
}
