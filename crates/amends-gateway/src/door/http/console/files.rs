//! What pages load beside themselves. The files are in `console/` at the root of the repository, and are part of the binary.

use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Response, StatusCode};

use super::super::body::Body;
use super::super::{plain_text, respond};

/// One of the files.
pub(super) fn file(name: &str, method: &Method) -> Response<Body> {
    let (kind, text) = match name {
        "console.css" => ("text/css; charset=utf-8", include_str!("../../../../../../console/console.css")),
        "console.js" => ("text/javascript; charset=utf-8", include_str!("../../../../../../console/console.js")),
        "chain.js" => ("text/javascript; charset=utf-8", include_str!("../../../../../../console/chain.js")),
        "run.js" => ("text/javascript; charset=utf-8", include_str!("../../../../../../console/run.js")),
        "theme.js" => ("text/javascript; charset=utf-8", include_str!("../../../../../../console/theme.js")),
        "icon.svg" => ("image/svg+xml", include_str!("../../../../../../console/icon.svg")),
        _ => return plain_text(StatusCode::NOT_FOUND, "there is no such file"),
    };
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut response = plain_text(StatusCode::METHOD_NOT_ALLOWED, "this is a file");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
        return response;
    }
    let mut response = respond(StatusCode::OK, kind, text.to_owned());
    let headers = response.headers_mut();
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert("cache-control", HeaderValue::from_static("no-cache"));
    response
}
