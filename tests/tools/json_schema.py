# SPDX-License-Identifier: BSD-3-Clause
"""What of JSON Schema the schemas of this tree use; a keyword that it does not know is an error."""
import re

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
NOTES = {"$schema", "$id", "title", "description"}
RULES = {
    "type": lambda v, a: isinstance(v, TYPES[a]) and (a == "boolean") == isinstance(v, bool),
    "const": lambda v, a: v == a,
    "enum": lambda v, a: v in a,
    "pattern": lambda v, a: re.search(a, v),
    "minimum": lambda v, a: v >= a,
    "minLength": lambda v, a: len(v) >= a,
    "minItems": lambda v, a: len(v) >= a,
    "maxItems": lambda v, a: len(v) <= a,
    "required": lambda v, a: all(name in v for name in a),
}


def errors(value, schema, at="$"):
    """What is wrong with a value, one text for each error."""
    for word, rule in schema.items():
        if word in RULES:
            if not RULES[word](value, rule):
                yield f"{at}: {word} {rule!r} does not hold for {value!r:.120}"
                if word == "type":
                    return
        elif word not in NOTES | {"properties", "additionalProperties", "items"}:
            yield f"{at}: the schema's {word} is not known here"
    if isinstance(value, dict):
        known = schema.get("properties", {})
        for name, inner in value.items():
            if name in known:
                yield from errors(inner, known[name], f"{at}.{name}")
            elif schema.get("additionalProperties", True) is False:
                yield f"{at}.{name}: no such property"
    if isinstance(value, list) and "items" in schema:
        for i, inner in enumerate(value):
            yield from errors(inner, schema["items"], f"{at}[{i}]")
