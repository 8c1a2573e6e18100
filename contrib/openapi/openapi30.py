#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""openapi30.py: writes an OpenAPI 3.1 document as OpenAPI 3.0, for generators
that know no later version (docs/api.md).

    openapi30.py < openapi.json > openapi30.json

What 3.0 cannot say becomes wider, never narrower: a value that may be one of
several objects has the fields of all; one that may be a string or an object is
of any type. RULES has each keyword of JSON Schema that differs.
"""
import json
import sys


def types(schema, value):
    """["string", "null"]: nullable. A boolean of a query may be sent as its text,
    which is the same there. Several other types: of any type."""
    some = [t for t in value if t != "null"]
    if "null" in value:
        schema["nullable"] = True
    if len(some) == 1 or some == ["boolean", "string"]:
        schema["type"] = some[0]


def enum(schema, value):
    """null is not one of the values."""
    schema["enum"] = [v for v in value if v is not None]
    if None in value:
        schema["nullable"] = True


def limit(name):
    """exclusiveMinimum is a number of its own, and becomes a flag."""
    flag = "exclusiveM" + name[1:]
    return lambda schema, value: schema.update({name: value, flag: True})


def nothing(schema, value):
    """3.0 has no such keyword, or only for what does not matter here."""


# keyword: what is written for it into the new schema
RULES = {
    "type": lambda schema, value: types(
        schema, value if isinstance(value, list) else [value]),
    "enum": enum,
    "const": lambda schema, value: schema.update(enum=[value]),
    "exclusiveMinimum": limit("minimum"),
    "exclusiveMaximum": limit("maximum"),
    "examples": lambda schema, value: schema.update(example=value[0]),
    "pattern": nothing,             # of ECMAScript; the server looks
    "not": nothing,
    "propertyNames": nothing,
    "patternProperties": nothing,
    "discriminator": nothing,
    "contentEncoding": nothing,
    "contentMediaType": nothing,
    "contentSchema": nothing,
    "unevaluatedProperties": nothing,
    "dependentRequired": nothing,
}


class Writer:
    """Writes a document anew."""

    def __init__(self, document):
        self.document = document

    def resolve(self, schema):
        """What SCHEMA refers to, if it does."""
        while "$ref" in schema:
            at = self.document
            for name in schema["$ref"][2:].split("/"):
                at = at[name.replace("~1", "/").replace("~0", "~")]
            schema = at
        return schema

    def one_of(self, members):
        """The schema that allows what any of MEMBERS allows."""
        real = [self.resolve(m) for m in members]
        if not all("type" in m or "oneOf" in m or "allOf" in m for m in real):
            return {}               # conditions on what the schema says itself
        some = [(m, r) for m, r in zip(members, real)
                if r.get("type") != "null"]
        null = {"nullable": True} if len(some) < len(members) else {}
        if len(some) == 1:
            return {"allOf": [self.schema(some[0][0])], **null}
        if any(r.get("type") != "object" for _, r in some):
            return null
        every = [r for _, r in some]
        names = list(dict.fromkeys(n for r in every for n in r["properties"]))
        return {"type": "object", **null,
                "properties": {n: self.any_of([r["properties"][n]
                               for r in every if n in r["properties"]])
                               for n in names},
                "required": [n for n in names
                             if all(n in r.get("required", []) for r in every)]}

    def any_of(self, members):
        """The same for a property of several objects."""
        if all(m == members[0] for m in members):
            return self.schema(members[0])
        if all("const" in m for m in members):
            return {"type": "string", "enum": [m["const"] for m in members]}
        return {}

    def schema(self, old):
        """The schema OLD in the new form."""
        if isinstance(old, bool):
            return {}
        if "$ref" in old:
            return {"$ref": old["$ref"]}
        new = {}
        for key, value in old.items():
            if key in RULES:
                RULES[key](new, value)
            elif key in ("oneOf", "anyOf"):
                new.update(self.one_of(value))
            elif key == "properties":
                new[key] = {n: self.schema(s) for n, s in value.items()
                            if not (isinstance(s, dict)
                                    and s.get("type") == "null")}
            elif key == "allOf":
                new[key] = [self.schema(s) for s in value]
            elif key == "items" or (key == "additionalProperties"
                                    and isinstance(value, dict)):
                new[key] = self.schema(value)
            else:
                new[key] = value
        if new.get("type") == "array":
            new.setdefault("items", {})
        if not new.get("required", True):
            del new["required"]
        return new

    def walk(self, node):
        """NODE with all schemas of it in the new form."""
        if isinstance(node, list):
            return [self.walk(n) for n in node]
        if not isinstance(node, dict):
            return node
        new = {}
        for key, value in node.items():
            if key == "schema":
                new[key] = self.schema(value)
            elif key == "schemas":
                new[key] = {n: self.schema(s) for n, s in value.items()}
            elif key in ("example", "examples"):
                continue
            elif key == "content":
                new[key] = self.content(value)
            else:
                new[key] = self.walk(value)
        return new

    def content(self, types):
        """JSON alone, if there is such a type. A file has no schema in 3.1."""
        if "application/json" in types:
            return {"application/json": self.walk(types["application/json"])}
        return {name: self.walk(media) if "schema" in media
                else {"schema": {"type": "string", "format": "binary"}}
                for name, media in types.items()}

    def write(self):
        """The whole document, without what 3.0 has no place for."""
        old = self.document
        return {"openapi": "3.0.3",
                "info": {k: v for k, v in old["info"].items()
                         if k not in ("summary", "license")},
                **{k: self.walk(old[k])
                   for k in ("servers", "security", "tags", "paths",
                             "components") if k in old}}


if __name__ == "__main__":
    json.dump(Writer(json.load(sys.stdin)).write(), sys.stdout, indent=1)
