//! The shop's tools by name.

/// One of the shop's tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    GetOrder,
    IssueRefund,
    GetRefund,
    CancelRefund,
    ChargeCard,
    SendEmail,
    SlowReport,
}

impl Tool {
    pub(crate) const ALL: [Tool; 7] = [
        Tool::GetOrder,
        Tool::IssueRefund,
        Tool::GetRefund,
        Tool::CancelRefund,
        Tool::ChargeCard,
        Tool::SendEmail,
        Tool::SlowReport,
    ];

    /// The tool that agents call by `name`.
    pub(crate) fn named(name: &str) -> Option<Tool> {
        Tool::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Tool::GetOrder => "get_order",
            Tool::IssueRefund => "issue_refund",
            Tool::GetRefund => "get_refund",
            Tool::CancelRefund => "cancel_refund",
            Tool::ChargeCard => "charge_card",
            Tool::SendEmail => "send_email",
            Tool::SlowReport => "slow_report",
        }
    }

    /// Whether the tool promises the shape of its result with an `outputSchema`.
    pub(crate) fn promises_shape(self) -> bool {
        matches!(self, Tool::IssueRefund | Tool::ChargeCard)
    }
}
