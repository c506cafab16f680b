//! *Machines*: each drawn, with the walks through it.

use amends_core::machine::graph::Marks;
use hyper::Response;
use maud::{PreEscaped, html};

use super::super::api::problem::Problem;
use super::super::api::sessions::{self, Wanted};
use super::super::body::Body;
use super::Asked;
use super::frame::Place;
use super::sessions::table;

/// How many walks through each machine are listed.
const WALKS_MAX: usize = 10;

pub(super) async fn page(asked: &Asked<'_>) -> Result<Response<Body>, Problem> {
    let gateway = &asked.door.gateway;
    let config = gateway.config();
    let mut machines = Vec::new();
    for machine in config.machines.declared() {
        let wanted = Wanted { machine: Some(machine.name().to_string()), limit: WALKS_MAX, ..Wanted::default() };
        machines.push((machine, sessions::list(gateway, &asked.signed_in.person, &wanted).await?));
    }
    Ok(asked.frame(Place::Machines, "Machines").with(html! {
        @if machines.is_empty() { p { "None is declared; see " code { "[machines.NAME]" } "." } }
        @for (machine, walks) in &machines {
            section aria-labelledby=(format!("machine-{}", machine.name())) {
                h2 id=(format!("machine-{}", machine.name())) { (machine.name()) }
                @if let Some(about) = machine.description() { p { (about) } }
                (PreEscaped(picture(&machine.svg(&Marks::default()))))
                h3 { "Walks" }
                div id=(format!("walks-{}", machine.name())) data-live { (table(&walks.items)) }
            }
        }
    }))
}

/// A machine's picture as a part of a page: its style is the page's own, since nothing written into a page counts as style. The
/// picture is ours, and every name in it is escaped.
pub(super) fn picture(svg: &str) -> String {
    let plain = match (svg.find("<style>"), svg.find("</style>")) {
        (Some(from), Some(to)) if from < to => format!("{}{}", &svg[..from], &svg[to + "</style>".len()..]),
        _ => svg.to_owned(),
    };
    plain.replacen("<svg ", "<svg class=\"graph\" ", 1)
}

#[cfg(test)]
mod tests {
    use super::picture;

    #[test]
    fn a_picture_in_a_page_has_no_style_of_its_own() {
        let plain = picture("<svg viewBox=\"0 0 1 1\"><style>a{}</style><g/></svg>");
        assert_eq!(plain, "<svg class=\"graph\" viewBox=\"0 0 1 1\"><g/></svg>");
    }
}
