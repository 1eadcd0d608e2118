"""Names that programs and people may choose, and that must stay text."""

HOSTILE = [
    "<script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "'><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    '<hx-partial hx-target="#main">x</hx-partial>',
    'a" hx-get="/logout" hx-trigger="load',
    "\u202egnp.exe",
    "تحديث قاعدة البيانات",
    "x" * 200,
    "&lt;b&gt;",
]
