//! Refusals, with the reply codes and texts of RabbitMQ.

/// Why the broker closes a channel or a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AmqpError {
    pub(super) code: Code,
    /// What follows the name of the code in the reply text.
    pub(super) detail: String,
}

/// Reply codes (AMQP 0-9-1, 1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    AccessRefused = 403,
    NotFound = 404,
    ResourceLocked = 405,
    PreconditionFailed = 406,
    FrameError = 501,
    SyntaxError = 502,
    CommandInvalid = 503,
    ChannelError = 504,
    UnexpectedFrame = 505,
    NotAllowed = 530,
    NotImplemented = 540,
}

impl Code {
    pub(super) const fn number(self) -> u16 {
        self as u16
    }

    const fn name(self) -> &'static str {
        match self {
            Self::AccessRefused => "ACCESS_REFUSED",
            Self::NotFound => "NOT_FOUND",
            Self::ResourceLocked => "RESOURCE_LOCKED",
            Self::PreconditionFailed => "PRECONDITION_FAILED",
            Self::FrameError => "FRAME_ERROR",
            Self::SyntaxError => "SYNTAX_ERROR",
            Self::CommandInvalid => "COMMAND_INVALID",
            Self::ChannelError => "CHANNEL_ERROR",
            Self::UnexpectedFrame => "UNEXPECTED_FRAME",
            Self::NotAllowed => "NOT_ALLOWED",
            Self::NotImplemented => "NOT_IMPLEMENTED",
        }
    }
}

impl AmqpError {
    pub(super) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }

    /// The reply text as RabbitMQ words it, such as `NOT_FOUND - no queue 'q' in vhost '/'`.
    pub(super) fn text(&self) -> String {
        format!("{} - {}", self.code.name(), self.detail)
    }

    /// Whether only the channel ends. All other codes end the connection.
    pub(super) const fn is_soft(&self) -> bool {
        matches!(
            self.code,
            Code::AccessRefused | Code::NotFound | Code::ResourceLocked | Code::PreconditionFailed
        )
    }
}
