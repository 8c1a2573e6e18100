# SPDX-License-Identifier: Apache-2.0
"""statements.py: whether statements concern one workspace

Reads JSON from stdin: {"keys": {table or view: its column that names the
workspace}, "volatile": [functions], "across": [functions that read tables and
are not told a workspace], "statements": [SQL], "functions": [CREATE FUNCTION]}.
Writes a list of faults for each statement; then for each function a list of its
statements that have faults, each as [statement, [faults]]:

    unbound TABLE      no condition says which workspace's rows
    set TABLE          rows of each workspace of an array of the client's
    correlated TABLE   a subquery has the workspace from the query around it
    volatile FUNCTION  a write has a function whose value is another each time
    returning TABLE    RETURNING of a write reads another table
    ambiguous NEW      RETURNING in a function has NEW or OLD, which are the
                       statement's own rows, too, from PostgreSQL 18 on
    values TABLE       VALUES of an INSERT have a subquery: it has to be a SELECT
    across FUNCTION    a function that goes over workspaces
    unread: ERROR      the parser does not know it

A table is bound if its key equals a value: a parameter, a constant, or a column
that does. The parser is PostgreSQL's own (pglast).
"""
import json
import re
import sys

from pglast import ast, parse_sql
from pglast.enums import (A_Expr_Kind, BoolExprType, BoolTestType, JoinType,
                          SetOperation, SubLinkType)
from pglast.parser import parse_plpgsql_json
from pglast.visitors import Visitor

WRITES = (ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt)
STATEMENT = re.compile(r"\(*(?:SELECT|INSERT|UPDATE|DELETE|WITH|VALUES|PREPARE"
                       r"|DECLARE|COPY)\b", re.I)
QUERIES = WRITES + (ast.SelectStmt,)


class Names(Visitor):
    """The functions that a tree calls, whether it reads columns, of which rows,
    and whether it has subqueries."""

    def __init__(self):
        super().__init__()
        self.functions, self.columns, self.subqueries = [], False, False
        self.rows = set()

    def visit_FuncCall(self, ancestors, node):
        self.functions.append(node.funcname[-1].sval)

    def visit_ColumnRef(self, ancestors, node):
        self.columns = True
        if isinstance(node.fields[0], ast.String):
            self.rows.add(node.fields[0].sval)

    def visit_SubLink(self, ancestors, node):
        self.columns = self.subqueries = True


def returning(tree):
    """What RETURNING of TREE has. From 18 on the parser has options, too."""
    clause = getattr(tree, "returningClause", None)
    return (clause.exprs if clause
            else getattr(tree, "returningList", None)) or ()


def names_in(tree):
    found = Names()
    found(tree)
    return found


class Value:
    """What a column may equal: a column of a relation, or a client's value."""

    def __init__(self, kind=None, table=None, query=None):
        self.kind = kind            # "value", "set", or None
        self.table = table          # of a relation that must be bound
        self.query = query          # the query that has it in its FROM
        self.all_of = None          # bound if all of these are
        self.edges = []             # (value, crosses): bound if that one is


class Query:
    """A query: its relations by alias, {column: Value}, and the one around."""

    def __init__(self, outer=None, ctes=None):
        self.outer = outer
        self.ctes = dict(ctes if ctes is not None
                         else outer.ctes if outer else {})
        self.relations = {}


class Judge:
    """Finds the faults of one statement. VARIABLES: a function's, or None."""

    def __init__(self, given, variables=None):
        self.given = given
        self.variables = variables
        self.value, self.set = Value("value"), Value("set")
        self.tables = []
        self.faults = set()

    # ---- what a column equals ------------------------------------------------

    def column(self, names, query):
        """The Value of a reference, and whether it is of a query around."""
        crosses, at = False, query
        while at:
            for alias, columns in at.relations.items():
                if len(names) > 1 and names[-2] == alias:
                    return columns.get(names[-1], columns.get("*")), crosses
                if len(names) == 1 and columns.get(names[-1]):
                    return columns[names[-1]], crosses
            crosses, at = True, at.outer
        known = self.variables is not None and (
            len(names) > 1 or names[0] in self.variables)
        return (self.value if known else None), False

    def meaning(self, tree, query):
        """The Value of the expression TREE, and whether it crosses."""
        if isinstance(tree, ast.TypeCast):
            return self.meaning(tree.arg, query)
        if isinstance(tree, ast.ColumnRef):
            if isinstance(tree.fields[-1], ast.A_Star):
                return None, False
            return self.column([f.sval for f in tree.fields], query)
        if isinstance(tree, ast.SubLink) \
                and tree.subLinkType == SubLinkType.EXPR_SUBLINK:
            columns = self.select(tree.subselect, Query(query))
            return next(iter(columns.values()), None), False
        if tree is None or isinstance(tree, ast.SetToDefault) \
                or (isinstance(tree, ast.A_Const) and tree.isnull):
            return None, False
        if not names_in(tree).columns or self.of_variables(tree, query):
            return self.value, False
        return None, False

    def of_variables(self, tree, query):
        """Whether the expression TREE has a function's variables only."""
        if self.variables is None:
            return False
        refs = []

        class Refs(Visitor):
            def visit_ColumnRef(self, ancestors, node):
                refs.append(node)

            def visit_SubLink(self, ancestors, node):
                refs.append(None)
        Refs()(tree)
        return all(ref and self.meaning(ref, query)[0] is self.value
                   for ref in refs)

    def equal(self, a, b, query, only=None):
        """The expressions A and B are equal; it binds columns of ONLY."""
        if isinstance(a, ast.RowExpr) and isinstance(b, ast.RowExpr):
            for x, y in zip(a.args, b.args):
                self.equal(x, y, query, only)
            return
        (x, x_crosses), (y, y_crosses) = \
            self.meaning(a, query), self.meaning(b, query)
        self.bind(x, y, x_crosses or y_crosses, only)

    def bind(self, x, y, crosses=False, only=None):
        if not x or not y or x is y:
            return
        for to, of in ((x, y), (y, x)):
            if only is None or to in only:
                to.edges.append((of, crosses))

    # ---- conditions ----------------------------------------------------------

    def condition(self, tree, query, only=None):
        """TREE is true of each row."""
        if isinstance(tree, ast.BoolExpr) \
                and tree.boolop == BoolExprType.AND_EXPR:
            for one in tree.args:
                self.condition(one, query, only)
            return
        if isinstance(tree, ast.BooleanTest) \
                and tree.booltesttype == BoolTestType.IS_TRUE:
            self.condition(tree.arg, query, only)
            return
        if isinstance(tree, ast.A_Expr) and tree.kind == A_Expr_Kind.AEXPR_OP \
                and tree.name[-1].sval == "=":
            self.equal(tree.lexpr, tree.rexpr, query, only)
            self.subqueries((tree.lexpr, tree.rexpr), query)
            return
        if isinstance(tree, ast.SubLink) and not tree.operName \
                and tree.subLinkType == SubLinkType.ANY_SUBLINK:
            self.in_query(tree, query, only)
            return
        self.subqueries(tree, query)

    def in_query(self, link, query, only):
        columns = list(self.select(link.subselect, Query(query)).values())
        tests = link.testexpr.args if isinstance(link.testexpr, ast.RowExpr) \
            else (link.testexpr,)
        for test, column in zip(tests, columns):
            value, crosses = self.meaning(test, query)
            self.bind(value, column, crosses, only)

    def subqueries(self, tree, query):
        """Look at the subqueries of the expression TREE."""
        judge = self

        class Links(Visitor):
            def visit_SubLink(self, ancestors, node):
                judge.subqueries(node.testexpr, query)
                judge.select(node.subselect, Query(query))
                return _skip()
        for one in tree if isinstance(tree, tuple) else (tree,):
            if isinstance(one, ast.SubLink):
                self.subqueries(one.testexpr, query)
                self.select(one.subselect, Query(query))
            elif isinstance(one, tuple):
                self.subqueries(one, query)
            elif isinstance(one, ast.Node):
                Links()(one)

    # ---- relations -----------------------------------------------------------

    def table(self, name, query):
        """The columns of a new reference to the table NAME."""
        key = self.given["keys"].get(name)
        if not key:
            return {}
        value = Value(table=name, query=query)
        self.tables.append(value)
        return {key: value}

    def add(self, tree, query):
        """Add an item of FROM to QUERY. Returns the Values of its columns."""
        if isinstance(tree, ast.JoinExpr):
            return self.join(tree, query)
        alias = tree.alias.aliasname if tree.alias else None
        if isinstance(tree, ast.RangeVar):
            columns = query.ctes.get(tree.relname) if not tree.schemaname \
                else None
            if columns is None:
                columns = self.table(tree.relname, query)
            alias = alias or tree.relname
        elif isinstance(tree, ast.RangeSubselect):
            columns = self.select(tree.subquery, Query(query))
        else:
            columns = self.rows_of(tree, query)
        given = tree.alias.colnames if tree.alias else None
        if given and "*" not in columns:
            columns = dict(zip([c.sval for c in given], columns.values()))
        query.relations[alias or f"?{len(query.relations)}"] = columns
        return [v for v in columns.values() if v]

    def rows_of(self, tree, query):
        """The columns of a function or VALUES: sets of the client's."""
        self.subqueries(getattr(tree, "functions", None), query)
        return {"*": self.set}

    def join(self, tree, query):
        left = self.add(tree.larg, query)
        before = dict(query.relations)
        right = self.add(tree.rarg, query)
        only = {JoinType.JOIN_INNER: None, JoinType.JOIN_LEFT: right,
                JoinType.JOIN_RIGHT: left}.get(tree.jointype, [])
        for name in tree.usingClause or ():
            sides = [[c[name.sval] for a, c in query.relations.items()
                      if (a in before) == first and c.get(name.sval)]
                     for first in (True, False)]
            if all(sides):
                self.bind(sides[0][0], sides[1][0], False, only)
        self.condition(tree.quals, query, only)
        return left + right

    # ---- statements ----------------------------------------------------------

    def ctes(self, clause, query):
        for cte in clause.ctes if clause else ():
            inner = Query(query.outer, query.ctes)
            if clause.recursive:
                inner.ctes[cte.ctename] = {}
            columns = self.any(cte.ctequery, inner)
            if cte.aliascolnames:
                columns = dict(zip([n.sval for n in cte.aliascolnames],
                                   columns.values()))
            query.ctes[cte.ctename] = columns

    def targets(self, items, query):
        """The columns that a target list or RETURNING gives."""
        columns = {}
        for n, item in enumerate(items or ()):
            tree = item.val
            if isinstance(tree, ast.ColumnRef) \
                    and isinstance(tree.fields[-1], ast.A_Star):
                of = tree.fields[-2].sval if len(tree.fields) > 1 else None
                for alias, relation in query.relations.items():
                    if of in (None, alias):
                        columns.update(relation)
                continue
            name = item.name or (tree.fields[-1].sval if isinstance(
                tree, ast.ColumnRef) else f"?{n}")
            value, _ = self.meaning(tree, query)
            if not isinstance(tree, ast.SubLink) or value is None:
                self.subqueries(tree, query)
            columns[name] = value
        return columns

    def select(self, tree, query):
        self.ctes(tree.withClause, query)
        if tree.op != SetOperation.SETOP_NONE:
            return self.union(tree, query)
        if tree.valuesLists:
            return self.values(tree.valuesLists, query)
        for item in tree.fromClause or ():
            self.add(item, query)
        self.condition(tree.whereClause, query)
        for part in (tree.groupClause, tree.havingClause, tree.sortClause,
                     tree.limitCount, tree.limitOffset, tree.distinctClause):
            self.subqueries(part, query)
        return self.targets(tree.targetList, query)

    def union(self, tree, query):
        left = self.select(tree.larg, Query(query.outer, query.ctes))
        right = self.select(tree.rarg, Query(query.outer, query.ctes))
        columns = {}
        for name, pair in zip(left, zip(left.values(), right.values())):
            columns[name] = Value()
            columns[name].all_of = pair
        return columns

    def values(self, rows, query):
        columns = {}
        for n, cells in enumerate(zip(*rows)):
            columns[f"column{n + 1}"] = Value()
            columns[f"column{n + 1}"].all_of = [
                self.meaning(cell, query)[0] for cell in cells]
            self.subqueries(tuple(cells), query)
        return columns

    def write(self, tree, query):
        """INSERT, UPDATE or DELETE."""
        self.ctes(tree.withClause, query)
        for name in names_in(tree).functions:
            if name in self.given["volatile"]:
                self.faults.add(f"volatile {name}")
        made = None
        if isinstance(tree, ast.InsertStmt) and tree.selectStmt:
            made = list(self.select(tree.selectStmt, Query(
                query.outer, query.ctes)).values())
        self.add(tree.relation, query)
        if isinstance(tree, ast.InsertStmt):
            self.inserted(tree, made, query)
        for item in getattr(tree, "fromClause", None) \
                or getattr(tree, "usingClause", None) or ():
            self.add(item, query)
        self.condition(getattr(tree, "whereClause", None), query)
        for item in getattr(tree, "targetList", None) or ():
            self.subqueries(item.val, query)
        before = len(self.tables)
        returned = returning(tree)
        if self.variables is not None:
            self.faults |= {f"ambiguous {name.upper()}" for item in returned
                            for name in names_in(item).rows & {"new", "old"}}
        columns = self.targets(returned, query)
        self.faults |= {f"returning {value.table}"
                        for value in self.tables[before:]}
        return columns

    def inserted(self, tree, made, query):
        key = self.given["keys"].get(tree.relation.relname)
        names = [c.name for c in tree.cols or ()]
        target = next(iter(query.relations.values())).get(key)
        if key and tree.selectStmt and tree.selectStmt.valuesLists \
                and names_in(tree.selectStmt).subqueries:
            self.faults.add(f"values {tree.relation.relname}")
        if made and key in names and names.index(key) < len(made):
            value = made[names.index(key)]
            if value:
                target.edges.append((value, False))
        if tree.onConflictClause:
            for item in tree.onConflictClause.targetList or ():
                self.subqueries(item.val, query)

    def any(self, tree, query):
        return self.write(tree, query) if isinstance(tree, WRITES) \
            else self.select(tree, query)

    # ---- the verdict ---------------------------------------------------------

    def bound(self, value, kinds, crossing, seen=()):
        if value is None or value in seen:
            return False
        if value.kind:
            return value.kind in kinds
        seen = seen + (value,)
        if value.all_of is not None:
            return all(self.bound(v, kinds, crossing, seen)
                       for v in value.all_of)
        return any(self.bound(v, kinds, crossing, seen)
                   for v, crosses in value.edges
                   if crossing or not crosses or v.kind)

    def verdict(self, tree):
        self.any(tree, Query())
        for value in self.tables:
            if self.bound(value, ("value",), False):
                continue
            self.faults.add(
                ("correlated " if self.bound(value, ("value",), True) else
                 "set " if self.bound(value, ("value", "set"), True)
                 else "unbound ") + value.table)
        for name in names_in(tree).functions:
            if name in self.given["across"]:
                self.faults.add(f"across {name}")
        return self.faults


def _skip():
    from pglast.visitors import Skip
    return Skip


def faults_of(sql, given, variables=None):
    """The faults of the statements of SQL, or of the expression SQL."""
    faults = set()
    sql = re.sub(r"\A(?:\s+|--[^\n]*\n|/\*.*?\*/)+", "", sql, flags=re.S)
    if not STATEMENT.match(sql):
        sql = "SELECT " + re.sub(
            r"\A\s*[\w.]+(?:\[[^\]]*\])?\s*:?=(?![>=]|\s*ANY\b)", "", sql)
    for raw in parse_sql(sql):
        tree = getattr(raw.stmt, "query", None) or raw.stmt
        if isinstance(tree, QUERIES):
            faults |= Judge(given, variables).verdict(tree)
    return faults


def expressions(tree, found, datums):
    """Collect the queries of a function, and the names of its variables."""
    if isinstance(tree, list):
        for one in tree:
            expressions(one, found, datums)
    elif isinstance(tree, dict):
        for name, value in tree.items():
            if name == "query" and isinstance(value, str):
                found.append(value)
            elif name in ("refname", "name") and isinstance(value, str):
                datums.add(value)
            else:
                expressions(value, found, datums)


def judged(sql, given, variables=None):
    try:
        return sorted(faults_of(sql, given, variables))
    except Exception as error:  # whatever the parser throws is a finding
        return [f"unread: {error}"]


def readable(sql):
    """A PL/pgSQL function with what the parser does not know in other words: a
    member of a parameter that is set, RETURN NEXT without a value, and, before its
    body, types of a schema."""
    head, begin, body = sql.partition("BEGIN")
    head = re.sub(r"\bcrmapi\.\w+\[\]", "text[]", head)
    sql = re.sub(r"\bcrmapi\.", "", head) + begin + body
    sql = re.sub(r"(?m)^(\s*)\w+\.\w+ := ", r"\1PERFORM ", sql)
    return re.sub(r"\bRETURN NEXT;", "NULL;", sql)


def parts(sql):
    """What the parser says of a PL/pgSQL function. With pglast 8 that is no JSON if
    it is a trigger's: a variable that it does not know has a brace too many."""
    said = parse_plpgsql_json(readable(sql))
    return json.loads(re.sub(r",{}}(?=,)", ",{}", said))


def judged_function(sql, given):
    """The statements of a PL/pgSQL function that have faults."""
    found, datums = [], set()
    try:
        expressions(parts(sql), found, datums)
    except Exception as error:
        return [["", [f"unread: {error}"]]]
    pairs = [[" ".join(query.split()), judged(query, given, datums)]
             for query in found]
    return [pair for pair in pairs if pair[1]]


def main():
    given = json.load(sys.stdin)
    json.dump([judged(s, given) for s in given["statements"]]
              + [judged_function(s, given) for s in given["functions"]],
              sys.stdout)


if __name__ == "__main__":
    main()
