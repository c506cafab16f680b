//! JSON as editors write it: with comments, and with commas before a closing bracket.

/// The same text as plain JSON. What is left out becomes spaces, so that a mistake keeps its line and column.
pub(super) fn plain(text: &str) -> String {
    let mut out: Vec<char> = Vec::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    // Where the last comma stands that nothing but spaces and comments came after.
    let mut comma: Option<usize> = None;
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                comma = None;
                out.push(c);
                while let Some(c) = chars.next() {
                    out.push(c);
                    match c {
                        '\\' => out.extend(chars.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            '/' if chars.peek() == Some(&'/') => {
                out.push(' ');
                while let Some(c) = chars.next_if(|c| *c != '\n') {
                    out.push(blank(c));
                }
            }
            '/' if chars.peek() == Some(&'*') => {
                out.extend([' ', ' ']);
                chars.next();
                while let Some(c) = chars.next() {
                    out.push(blank(c));
                    if c == '*' && chars.next_if_eq(&'/').is_some() {
                        out.push(' ');
                        break;
                    }
                }
            }
            ',' => {
                comma = Some(out.len());
                out.push(c);
            }
            '}' | ']' => {
                if let Some(at) = comma.take() {
                    out[at] = ' ';
                }
                out.push(c);
            }
            c => {
                if !c.is_whitespace() {
                    comma = None;
                }
                out.push(c);
            }
        }
    }
    out.into_iter().collect()
}

fn blank(c: char) -> char {
    if c == '\n' || c == '\t' { c } else { ' ' }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(text: &str) -> Value {
        serde_json::from_str(&plain(text)).expect(text)
    }

    #[test]
    fn comments_and_last_commas_are_left_out_and_texts_stay() {
        assert_eq!(read("{\"a\": [1, 2, /* x, */ ], // ,}\n}"), json!({ "a": [1, 2] }));
        assert_eq!(
            read(r#"{"u": "http://x, // no /* no */", "q": "\"//\\",}"#),
            json!({ "u": "http://x, // no /* no */", "q": "\"//\\" })
        );
        assert_eq!(read("[\"é\",\n// ü\n]"), json!(["é"]));
    }

    #[test]
    fn a_mistake_keeps_its_line() {
        let error = serde_json::from_str::<Value>(&plain("{\n// one\n/* two\nthree */ \"a\": nonsense }")).unwrap_err();
        assert_eq!(error.line(), 4);
    }

    #[test]
    fn what_never_ends_ends_here() {
        for text in ["/*", "\"", "\"\\", "//", "/", ",", "{,}", "/* *"] {
            let _ = plain(text);
        }
    }
}
