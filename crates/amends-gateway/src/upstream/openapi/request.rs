//! A tool call as a request to the API: each argument where its parameter goes, the rest in the body.

use amends_wire::object::Object;
use hyper::header::{HeaderName, HeaderValue};
use serde_json::value::RawValue;

use super::body::Written;
use super::operation::Operation;
use super::parameter::Place;

/// A request to the API without what is the same for all of them.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The path and the query, encoded.
    pub(super) target: String,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// The cookies, encoded.
    pub(super) cookies: Vec<String>,
    pub(super) body: Option<Written>,
}

impl Operation {
    /// The request for those arguments, an object; in words, what is wrong with them.
    pub(super) fn request(&self, arguments: &str) -> Result<Outgoing, String> {
        let arguments = Object::parse(arguments).ok_or_else(|| "the arguments are not an object".to_owned())?;
        let mut rest: Vec<(String, &RawValue)> = Vec::new();
        for member in arguments.members() {
            let name = member.name().into_owned();
            // The last of two counts, as it does for whoever checked them.
            rest.retain(|(known, _)| *known != name);
            rest.push((name, member.value));
        }
        let mut target = self.path.clone();
        let mut query: Vec<String> = Vec::new();
        let mut outgoing = Outgoing { target: String::new(), headers: Vec::new(), cookies: Vec::new(), body: None };
        for parameter in &self.parameters {
            let given = rest.iter().position(|(name, _)| *name == parameter.argument);
            let given = given.map(|at| rest.remove(at).1).filter(|value| value.get() != "null");
            let Some(value) = given else {
                if parameter.required {
                    return Err(format!("`{}` is missing", parameter.argument));
                }
                continue;
            };
            match parameter.place {
                Place::Path => {
                    let text = parameter.text(value)?;
                    // Whoever reads the path would take these for a way up, or for another path.
                    if matches!(text.as_str(), "" | "." | "..") {
                        return Err(format!("`{}` cannot be `{text}` in a path", parameter.argument));
                    }
                    target = target.replace(&format!("{{{}}}", parameter.name), &text);
                }
                Place::Query => {
                    query.extend(parameter.pairs(value)?.into_iter().map(|(name, value)| format!("{name}={value}")));
                }
                Place::Header => {
                    let name = HeaderName::from_bytes(parameter.name.as_bytes()).ok();
                    let value = HeaderValue::from_str(&parameter.text(value)?).ok();
                    let unfit = || format!("`{}` does not fit into a header", parameter.argument);
                    outgoing.headers.push(name.zip(value).ok_or_else(unfit)?);
                }
                Place::Cookie => {
                    outgoing.cookies.push(format!("{}={}", parameter.name, parameter.text(value)?));
                }
            }
        }
        match (&self.body, rest.first()) {
            (Some(body), _) => outgoing.body = body.write(&rest)?,
            (None, Some((name, _))) => return Err(format!("there is no argument `{name}`")),
            (None, None) => {}
        }
        // What is written before or after an argument can make such a way of it, too.
        if target.split('/').any(|part| matches!(part, "." | "..")) {
            return Err(format!("`{target}` is no path of the API"));
        }
        if !query.is_empty() {
            target = format!("{target}?{}", query.join("&"));
        }
        outgoing.target = target;
        Ok(outgoing)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Api;

    fn api(parameters: &str, body: &str) -> Api {
        let text = format!(
            "openapi: 3.1.0\npaths:\n  /a/{{id}}/b:\n    post:\n      parameters:\n        \
             - {{name: id, in: path, required: true, schema: {{}}}}\n{parameters}{body}"
        );
        Api::parse(text, "d.yaml").unwrap()
    }

    fn target(parameter: &str, arguments: &str) -> Result<String, String> {
        let api = api(&format!("        - {{{parameter}}}\n"), "");
        api.operations[0].request(arguments).map(|outgoing| outgoing.target)
    }

    #[test]
    fn queries_are_written_in_their_styles() {
        for (parameter, value, written) in [
            ("name: q, in: query", "\"a b&c\"", "q=a%20b%26c"),
            ("name: q, in: query", "[1.0,\"x\"]", "q=1.0&q=x"),
            ("name: q, in: query, explode: false", "[1,2]", "q=1,2"),
            ("name: q, in: query, style: pipeDelimited, explode: false", "[1,2]", "q=1%7C2"),
            (
                "name: q, in: query, style: deepObject, explode: true",
                "{\"a\":1,\"b\":\"é\"}",
                "q%5Ba%5D=1&q%5Bb%5D=%C3%A9",
            ),
            ("name: q, in: query", "{\"a\":1,\"b\":2}", "a=1&b=2"),
            ("name: q, in: query, content: {application/json: {}}", "{\"a\":1.0}", "q=%7B%22a%22%3A1.0%7D"),
            ("name: q, in: query", "12345678901234567890123", "q=12345678901234567890123"),
        ] {
            let target = target(parameter, &format!("{{\"id\":7,\"q\":{value}}}")).unwrap();
            assert_eq!(target, format!("/a/7/b?{written}"));
        }
        assert_eq!(target("name: q, in: query", r#"{"id":7,"q":null}"#).unwrap(), "/a/7/b");
    }

    #[test]
    fn a_path_stays_the_path_it_is() {
        let plain = |id: &str| target("name: q, in: query", &format!("{{\"id\":{id}}}"));
        assert_eq!(plain(r#""../x?y#z""#).unwrap(), "/a/..%2Fx%3Fy%23z/b");
        for id in [r#""..""#, r#"".""#, r#""""#, "null"] {
            assert!(plain(id).is_err(), "{id}");
        }
        assert_eq!(plain(r#"["x",2]"#).unwrap(), "/a/x,2/b");
        assert!(plain("[[1]]").unwrap_err().contains("a list or an object"));
        assert!(plain(r#"7,"other":1"#).unwrap_err().contains("no argument `other`"));
    }

    #[test]
    fn paths_are_written_in_their_styles() {
        for (style, value, written) in [
            ("label", "\"a b\"", ".a%20b"),
            ("label", "[1,\"x.y\"]", ".1,x.y"),
            ("label, explode: true", "[1,2]", ".1.2"),
            ("label", "{\"a\":1,\"b\":2}", ".a,1,b,2"),
            ("label, explode: true", "{\"a\":1,\"b\":2}", ".a=1.b=2"),
            ("matrix", "5", ";q=5"),
            ("matrix", "\"\"", ";q"),
            ("matrix", "\"a;b/c\"", ";q=a%3Bb%2Fc"),
            ("matrix", "[1,2]", ";q=1,2"),
            ("matrix, explode: true", "[1,2]", ";q=1;q=2"),
            ("matrix", "{\"a\":1,\"b\":2}", ";q=a,1,b,2"),
            ("matrix, explode: true", "{\"a\":1,\"b\":\"\"}", ";a=1;b"),
        ] {
            let text = format!(
                "openapi: 3.1.0\npaths:\n  /a/{{q}}:\n    get:\n      parameters:\n        \
                 - {{name: q, in: path, required: true, style: {style}, schema: {{}}}}\n"
            );
            let api = Api::parse(text, "d.yaml").unwrap();
            let target = api.operations[0].request(&format!("{{\"q\":{value}}}")).unwrap().target;
            assert_eq!(target, format!("/a/{written}"), "{style} {value}");
        }
        let text = "openapi: 3.1.0\npaths:\n  /a/.{q}:\n    get:\n      parameters:\n        \
                    - {name: q, in: path, required: true, style: label, schema: {}}\n";
        let api = Api::parse(text.to_owned(), "d.yaml").unwrap();
        for up in ["\"\"", "\".\"", "[]"] {
            assert!(api.operations[0].request(&format!("{{\"q\":{up}}}")).is_err(), "{up}");
        }
        let query = "name: q, in: query, style: matrix";
        let api = self::api(&format!("        - {{{query}}}\n"), "");
        assert_eq!(api.unserved[0].1, "its parameter `q` is in the style `matrix`");
    }

    #[test]
    fn headers_and_cookies_carry_no_line_breaks() {
        let framing = "        - {name: Content-Length, in: header}\n";
        assert!(
            api(framing, "").operations[0].request(r#"{"id":1,"Content-Length":"0"}"#).is_err(),
            "no such argument"
        );
        let api = api("        - {name: X-A, in: header}\n        - {name: c, in: cookie}\n", "");
        let outgoing = api.operations[0].request(r#"{"id":1,"X-A":"v","c":"a;b\nc"}"#).unwrap();
        assert_eq!(outgoing.headers[0].1, "v");
        assert_eq!(outgoing.cookies, ["c=a%3Bb%0Ac"]);
        let refused = api.operations[0].request(r#"{"id":1,"X-A":"v\r\nx: y"}"#).unwrap_err();
        assert_eq!(refused, "`X-A` does not fit into a header");
    }

    #[test]
    fn a_body_keeps_the_spelling_of_its_values() {
        let schema = "schema: {type: object, required: [n], properties: {n: {}, m: {}}}";
        let body = |media: &str| format!("      requestBody: {{content: {{{media}: {{{schema}}}}}}}\n");
        let api = api("", &body("application/json"));
        let outgoing = api.operations[0].request(r#"{"n":1.00,"id":1,"m":{"a" : 1e2}}"#).unwrap();
        assert_eq!(outgoing.body.unwrap().bytes, r#"{"n":1.00,"m":{"a" : 1e2}}"#);
        let form = self::api("", &body("application/x-www-form-urlencoded"));
        let outgoing = form.operations[0].request(r#"{"n":1.00,"id":1,"m":{"a":1}}"#).unwrap();
        assert_eq!(outgoing.body.unwrap().bytes, "n=1.00&m%5Ba%5D=1");
        let parts = self::api("", &body("multipart/form-data"));
        let written = parts.operations[0].request(r#"{"n":1.00,"id":1,"m":{"a":1}}"#).unwrap().body.unwrap();
        assert!(written.content_type.starts_with("multipart/form-data; boundary="), "{}", written.content_type);
        assert!(written.bytes.ends_with(b"--\r\n"));
    }
}
