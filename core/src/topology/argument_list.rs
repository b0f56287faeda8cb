//! The arguments that the settings of a description make, and what two settings say differently.

use super::arguments::QUEUE_TYPE;
use super::check::Problem;
use crate::table::{Table, Value};
use crate::text::ShortString;

/// Arguments on their way into a declaration, with what two settings say differently about one of them.
#[derive(Default)]
pub(super) struct ArgumentList {
    table: Table,
    /// The setting that each argument of the table comes from.
    settings: Vec<&'static str>,
    conflicts: Vec<Problem>,
}

impl ArgumentList {
    /// Notes what a setting says, under the name of its setter. The first setting of an argument stays.
    pub(super) fn set(&mut self, argument: ShortString, setting: &'static str, value: impl Into<Value>) {
        let value = value.into();
        let known = self.table.iter().position(|(name, _)| *name == argument);
        let Some((known, at)) = known.and_then(|at| Some((self.table.get(&argument)?, at))) else {
            self.table.insert(argument, value);
            self.settings.push(setting);
            return;
        };
        if !equivalent(known, &value) {
            self.conflicts.push(Problem::SettingsContradict {
                argument,
                setting: self.settings.get(at).copied().unwrap_or("argument"),
                value: known.clone(),
                other_setting: setting,
                other_value: value,
            });
        }
    }

    /// The arguments, and the contradictions among the settings that they come from.
    pub(super) fn finish(self) -> (Table, Vec<Problem>) {
        (self.table, self.conflicts)
    }
}

/// Whether RabbitMQ takes two values of one argument for the same: integers whatever their width.
pub(super) fn equivalent(one: &Value, other: &Value) -> bool {
    match (one.as_i64(), other.as_i64()) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

/// The type that a queue is declared with. RabbitMQ takes a declaration without one for a classic queue, unless
/// the virtual host has another default.
pub(super) fn queue_type(arguments: &Table) -> Option<&str> {
    arguments.get(&QUEUE_TYPE).map_or(Some("classic"), Value::as_str)
}

/// An argument that is an integer.
pub(super) fn integer(arguments: &Table, name: &str) -> Option<i64> {
    arguments.get(name).and_then(Value::as_i64)
}

/// An argument that is text.
pub(super) fn text<'a>(arguments: &'a Table, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}
