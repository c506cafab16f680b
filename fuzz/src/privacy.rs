//! Masking: any text comes out clean, and stays as it is when it is masked once more; any arguments give a bounded view.

use amends_core::privacy::{Category, Field, Mask, VIEW_BYTES_MAX};
use serde_json::Value;

/// Masks the bytes as a text, and as arguments where they are JSON.
pub fn target(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let with_shape = Category::ALL.into_iter().filter(|category| category.has_pattern());
    let fields = ["args.a", "args.*.b", "args.list.*"].map(|path| Field::parse(path, None).expect("a path"));
    let all = Mask::new(with_shape, fields.to_vec(), true).expect("all of them have a shape");
    for mask in [Mask::default(), all] {
        let masked = mask.text(&text);
        assert!(!mask.finds(&masked), "{text:?} -> {masked:?}");
        assert_eq!(mask.text(&masked), masked);
        if !mask.finds(&text) {
            assert_eq!(masked, text);
        }
        if let Ok(arguments) = serde_json::from_str::<Value>(&text) {
            let view = mask.view(&arguments);
            assert!(view.len() <= VIEW_BYTES_MAX + '…'.len_utf8());
            let without = mask.text_without(&text, &mask.quoted_of_arguments(&arguments));
            assert!(!mask.finds(&without), "{text:?} -> {without:?}");
        }
    }
    if let Ok(field) = Field::parse(&text, None) {
        let _ = Mask::default().with_fields(&[field]);
    }
}
