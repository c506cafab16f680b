//! Lists of tools: an entry keeps its bytes under another name, and a list of ours reads back.

use amends_wire::mcp::era::{Era, stamped};
use amends_wire::mcp::lists::{Kind, list as list_of};
use amends_wire::mcp::{ToolList, tools};
use amends_wire::{Object, Schema};

/// Reads the bytes as the result of a `tools/list`.
pub fn target(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for era in [Era::Legacy, Era::Modern] {
        let out = stamped(&text, "tools/list", era);
        match Object::parse(&text) {
            Some(object) => {
                let after = Object::parse(&out).expect("a stamped object is one");
                let kept = after.members().iter().zip(object.members());
                assert!(kept.clone().all(|(a, b)| (a.key.get(), a.value.get()) == (b.key.get(), b.value.get())));
                assert_eq!(kept.count(), object.members().len());
                assert!(era == Era::Legacy || after.get("resultType").is_some());
            }
            None => assert_eq!(out, text),
        }
    }
    let Some(list) = ToolList::parse(&text) else {
        return;
    };
    let mut entries = Vec::new();
    for tool in &list.tools {
        let name = format!("shop\"\\__{}", tool.name);
        let renamed = tools::rename(&tool.raw, &name);
        let (before, after) = (Object::parse(tool.raw.get()), Object::parse(&renamed));
        let (before, after) = before.zip(after).expect("an entry is an object, whatever its name");
        assert_eq!(after.string("name").as_deref(), Some(&*name));
        assert_eq!(before.members().len(), after.members().len());
        for (before, after) in before.members().iter().zip(after.members()) {
            assert_eq!(before.key.get(), after.key.get());
            assert!(before.name() == "name" || before.value.get() == after.value.get());
        }
        for schema in [&tool.input_schema, &tool.output_schema].into_iter().flatten() {
            let _ = Schema::compile(schema);
        }
        entries.push(renamed);
    }
    let ours = list_of(Kind::Tools, entries.iter().map(String::as_str), list.next_cursor.as_deref());
    let again = ToolList::parse(&ours).expect("a list of ours is one");
    assert_eq!((again.tools.len(), again.unreadable), (list.tools.len(), 0));
    assert_eq!(again.next_cursor, list.next_cursor);
    assert!(again.tools.iter().zip(&entries).all(|(tool, entry)| tool.raw.get() == entry));
}
