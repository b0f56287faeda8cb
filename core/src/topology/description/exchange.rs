//! An exchange as a user describes it.

use crate::table::{Table, Value};
use crate::text::ShortString;
use crate::topology::argument_list::ArgumentList;
use crate::topology::arguments::{ALTERNATE_EXCHANGE, DELAYED_TYPE};
use crate::topology::check::Problem;
use crate::topology::{ExchangeDeclaration, ExchangeKind, ExchangeName};

/// An exchange as a user describes it: durable, unless the setters say otherwise.
///
/// Setters take anything; [`Topology::check`](crate::topology::Topology::check) says what is wrong with the whole.
///
/// ```
/// # use leveret_core::topology::{Exchange, ExchangeKind, ExchangeName};
/// let unrouted = ExchangeName::new("shop.unrouted")?;
/// let events = Exchange::new(ExchangeName::new("shop.events")?, ExchangeKind::Topic).alternate(unrouted);
/// assert!(events.declaration().durable);
/// # Ok::<(), leveret_core::topology::NameError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    name: ExchangeName,
    kind: ExchangeKind,
    durable: bool,
    auto_delete: bool,
    internal: bool,
    alternate: Option<ExchangeName>,
    arguments: Table,
}

impl Exchange {
    /// An exchange of this name and kind with the defaults that the setters state.
    #[must_use]
    pub const fn new(name: ExchangeName, kind: ExchangeKind) -> Self {
        Self {
            name,
            kind,
            durable: true,
            auto_delete: false,
            internal: false,
            alternate: None,
            arguments: Table::new(),
        }
    }

    /// Whether the exchange survives a restart of the broker. Default on.
    #[must_use]
    pub fn durable(self, durable: bool) -> Self {
        Self { durable, ..self }
    }

    /// Whether the exchange goes when the last thing bound to it does. Default off.
    #[must_use]
    pub fn auto_delete(self, auto_delete: bool) -> Self {
        Self { auto_delete, ..self }
    }

    /// Whether only other exchanges may publish to it. Default off.
    #[must_use]
    pub fn internal(self, internal: bool) -> Self {
        Self { internal, ..self }
    }

    /// The exchange that gets what this one cannot route (`alternate-exchange`). Default none. A message that
    /// the alternate routes counts as routed: a mandatory one does not come back.
    #[must_use]
    pub fn alternate(self, exchange: ExchangeName) -> Self {
        Self { alternate: Some(exchange), ..self }
    }

    /// A raw argument, for what is not modelled here. Sent as it is; one that says something else than a
    /// setting is refused. Its name is not checked: a misspelt one has no effect, neither here nor at the broker.
    #[must_use]
    pub fn argument(mut self, name: ShortString, value: impl Into<Value>) -> Self {
        self.arguments.insert(name, value);
        self
    }

    /// The exchange's name.
    #[must_use]
    pub const fn name(&self) -> &ExchangeName {
        &self.name
    }

    pub(in crate::topology) const fn kind(&self) -> &ExchangeKind {
        &self.kind
    }

    /// What is sent to the broker.
    #[must_use]
    pub fn declaration(&self) -> ExchangeDeclaration {
        self.draft().0
    }

    /// The declaration, and the contradictions among the settings.
    pub(in crate::topology) fn draft(&self) -> (ExchangeDeclaration, Vec<Problem>) {
        let mut list = ArgumentList::default();
        if let ExchangeKind::Delayed { routes } = self.kind {
            list.set(DELAYED_TYPE, "kind", routes.as_str());
        }
        if let Some(alternate) = &self.alternate {
            list.set(ALTERNATE_EXCHANGE, "alternate", alternate.as_short());
        }
        for (name, value) in self.arguments.iter() {
            list.set(name.clone(), "argument", value.clone());
        }
        let (arguments, conflicts) = list.finish();
        let declaration = ExchangeDeclaration {
            name: self.name.clone(),
            kind: self.kind.clone(),
            passive: false,
            durable: self.durable,
            auto_delete: self.auto_delete,
            internal: self.internal,
            arguments,
        };
        (declaration, conflicts)
    }
}
