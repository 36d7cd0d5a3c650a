"""Writes mutants into C++ source: many in one text, each with a number that turns it on at run time.

What is changed, in function bodies only:
  condition:true   the condition of an if or ?:, an operand of &&, a == or != that is an operand: forced
  condition:false  the same, the condition of a loop, an operand of ||; a pointer that a condition
                   declares becomes null
  compare:OP       < becomes <=, <= becomes <, and so on
  statement:drop   a call, an assignment, a delete that is a statement does not happen
A forced condition is evaluated all the same. What is left out: assertions, constant expressions, loops
that would not end (a loop's condition forced true), statements that declare.

The text is read by tokens, not parsed: it relies on the layout that clang-format gives (spaces around
a binary operator, none before a template's <). Lines stay where they are.
"""
import bisect
import collections
import re

Mutant = collections.namedtuple("Mutant", "number line change text")
Token = collections.namedtuple("Token", "text begin end kind spaced")

TOKEN = re.compile(
    r'(?P<space>\s+|//[^\n]*|/\*(?s:.*?)\*/|(?m:^)[ \t]*\#(?:[^\n\\]|\\\n|\\.)*)'
    r'|(?P<text>R"(?P<tag>[^()\\ ]*)\((?s:.*?)\)(?P=tag)"|"(?:[^"\\\n]|\\.)*"'
    r"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+')"
    r"|(?P<number>\.?\d(?:[eEpP][+-]|[\w.']|)*)"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<sign><<=|>>=|<=>|\.\.\.|->\*|::|->|\+\+|--|&&|\|\||[-+*/%&|^<>=!]=|<<|>>|.)")

CLOSE = {"(": ")", "[": "]", "{": "}"}
ASSIGN = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
COMPARE = {"<": ("less", "<="), "<=": ("less_equal", "<"), ">": ("greater", ">="),
           ">=": ("greater_equal", ">"), "==": None, "!=": None}
# No expression statement begins with one of these.
DECLARES = set("""return throw using static_assert goto break continue case default new typedef template
namespace class struct enum union auto const constexpr constinit static inline extern if for while do
switch else friend public protected private asm try catch thread_local typename unsigned signed int bool
char void long short float double co_await co_return co_yield requires concept explicit virtual
operator""".split())
# What stands in the parentheses after these is no run-time code, a check of its own, or a help to the
# checker or the machine.
UNTOUCHED = re.compile(r"^([A-Z][A-Z0-9_]+|static_assert|noexcept|decltype|sizeof|alignas|alignof|requires|"
                       r"assert|perturb|pause|relax|sched_yield)$")
# A brace behind one of these opens a block.
BEFORE_BLOCK = {")", "]", "{", "}", ";", "else", "do", "try", "mutable", "noexcept", "const", "override", "final"}
# An operand of && ends at one of these, of a comparison at the second, of ?: at the third.
ENDS_AND = {"&&", "||", "?", ":", ",", ";", "return", "co_return", "throw"} | ASSIGN
ENDS_OR = ENDS_AND - {"&&"}
ENDS_EQUAL = ENDS_AND | {"==", "!=", "&", "|", "^"}
ENDS_LESS = ENDS_EQUAL | {"<", ">", "<=", ">="}
ENDS_ASK = ENDS_AND - {"&&", "||"}


def tokens_of(text):
    """The tokens without comments and preprocessor lines; spaced: with a blank on both sides."""
    found = []
    for match in TOKEN.finditer(text):
        if match.lastgroup == "space" or match["space"]:
            continue
        begin, end = match.span()
        spaced = text[begin - 1:begin].isspace() and text[end:end + 1].isspace()
        kind = next(k for k in ("text", "number", "word", "sign") if match[k])
        found.append(Token(match[0], begin, end, kind, spaced))
    return found


class Rewriter:
    """One file. `next_number` is the first mutant's number."""

    def __init__(self, text, next_number=1):
        self.text = text
        self.next = next_number
        self.mutants = []
        self.edits = []  # (begin, end, text before, text after, the operator to be a comma)
        self.taken = set()  # ranges that are forced already
        self.tokens = tokens_of(text)
        self.partner = self.pair()
        self.lines = [0] + [m.end() for m in re.finditer("\n", text)]
        self.untouched = self.mark_untouched()

    # ---- the structure

    def pair(self):
        """The index of the bracket that belongs to each bracket; template brackets too."""
        partner, stack = {}, []
        for i, token in enumerate(self.tokens):
            if token.text in CLOSE and token.kind == "sign":
                stack.append(i)
            elif token.text == "<" and self.opens_template(i):
                stack.append(i)
            elif token.text in (">", ">>") and not token.spaced:
                for _ in token.text:
                    if stack and self.tokens[stack[-1]].text == "<":
                        begin = stack.pop()
                        partner[begin], partner[i] = i, begin
            elif token.text in (")", "]", "}") and token.kind == "sign":
                while stack and self.tokens[stack[-1]].text == "<":
                    stack.pop()
                if stack:
                    begin = stack.pop()
                    partner[begin], partner[i] = i, begin
        return partner

    def opens_template(self, i):
        before = self.tokens[i - 1] if i else None
        return (before is not None and not self.tokens[i].spaced
                and (before.text == "template" or (before.kind == "word" and before.end == self.tokens[i].begin)))

    def mark_untouched(self):
        """The tokens within assertions, constant expressions, and outside of function bodies."""
        marked = set()
        inside = self.bodies()
        i = 0
        for i, token in enumerate(self.tokens):
            if not inside[i]:
                marked.add(i)
            elif token.kind == "word" and UNTOUCHED.match(token.text) and self.at(i + 1) == "(":
                marked.update(range(i, self.partner.get(i + 1, i) + 1))
            elif token.text == "constexpr":  # a constant up to its end, or a condition
                end = self.partner[i + 1] if self.at(i + 1) == "(" else self.after_statement(i)
                marked.update(range(i, end))
            elif token.text == "<" and i in self.partner:
                marked.update(range(i, self.partner[i] + 1))
        return marked

    def bodies(self):
        """For each token: does it stand in a function's body?"""
        inside = [False] * len(self.tokens)
        begin = i = 0
        while i < len(self.tokens):
            text = self.tokens[i].text
            if text in ("(", "["):
                i = self.partner.get(i, i)
            elif text in (";", "}"):
                begin = i + 1
            elif text == "{" and i in self.partner:
                kind = self.brace(begin, i)
                if kind == "body":
                    for k in range(i, self.partner[i] + 1):
                        inside[k] = True
                    i = self.partner[i]
                    begin = i + 1
                elif kind == "scope":
                    begin = i + 1
                else:
                    i = self.partner[i]
            i += 1
        return inside

    def brace(self, begin, i):
        """What a brace outside of functions opens: a scope, a function's body or an initialiser."""
        head, k = [], begin
        while k < i:  # the heading without what stands in brackets
            head.append(self.tokens[k].text)
            k = self.partner.get(k, k) + 1 if self.tokens[k].text in ("(", "[", "<") else k + 1
        before = self.tokens[i - 1].text if i else ""
        if "(" not in head or "namespace" in head or (head and head[0] == "extern"):
            keys = {"namespace", "class", "struct", "union", "enum", "extern"}
            return "scope" if keys & set(head) else "initialiser"
        if "=" in head and "operator" not in head:
            return "initialiser"
        if ":" in head[head.index("("):]:  # a constructor's initialisers, and then its body
            return "body" if before in (")", "}") else "initialiser"
        return "body"

    def at(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def after_statement(self, i):
        while i < len(self.tokens) and self.at(i) != ";":
            i = self.partner.get(i, i) + 1 if self.at(i) in CLOSE else i + 1
        return i

    # ---- the edits

    def number(self, first, last, change):
        """The number of a new mutant, which changes the tokens [first, last)."""
        begin, end = self.tokens[first].begin, self.tokens[last - 1].end
        line = bisect.bisect_right(self.lines, begin)
        stop = (self.lines + [len(self.text) + 1])[line] - 1
        end = min(end, stop)
        text = (f"{self.text[self.lines[line - 1]:begin]}<<{self.text[begin:end]}>>"
                f"{self.text[end:stop]}")
        self.mutants.append(Mutant(self.next, line, change, text.split("  //")[0].strip()))
        self.next += 1
        return self.next - 1

    def force(self, first, last, to_true, to_false):
        """Forces the tokens [first, last), a condition."""
        if first >= last or (first, last) in self.taken or first in self.untouched:
            return
        if self.at(first) in ("true", "false") and last == first + 1:
            return
        self.taken.add((first, last))
        true = self.number(first, last, "condition:true") if to_true else 0
        false = self.number(first, last, "condition:false") if to_false else 0
        self.edits.append((self.tokens[first].begin, self.tokens[last - 1].end,
                           f"::mutant::force({true}, {false}, static_cast<bool>(", "))", None))

    def nothing(self, first, last):
        if first < last and first not in self.untouched:
            number = self.number(first, last, "condition:false")
            self.edits.append((self.tokens[first].begin, self.tokens[last - 1].end,
                               f"::mutant::nothing({number}, ", ")", None))

    def drop(self, first, last):
        number = self.number(first, last, "statement:drop")
        self.edits.append((self.tokens[first].begin, self.tokens[last - 1].end,
                           f"static_cast<void>(::mutant::drop({number}) || (static_cast<void>(",
                           "), true))", None))

    def loosen(self, first, middle, last):
        name, becomes = COMPARE[self.at(middle)]
        number = self.number(first, last, f"compare:{becomes}")
        self.edits.append((self.tokens[first].begin, self.tokens[last - 1].end,
                           f"::mutant::{name}({number}, ", ")", self.tokens[middle]))

    # ---- what there is to change

    def left(self, i, ends):
        """The first token of the operand that ends before token i."""
        k = i - 1
        while k >= 0:
            text = self.at(k)
            if text in (")", "]", "}") or (text in (">", ">>") and k in self.partner):
                k = self.partner.get(k, -1) - 1
                continue
            if text in CLOSE or self.ends(k, ends):
                break
            k -= 1
        return k + 1

    def right(self, i, ends):
        """The token behind the operand that begins after token i."""
        k = i + 1
        while k < len(self.tokens):
            text = self.at(k)
            if text in (")", "]", "}") or self.ends(k, ends):
                break
            k = self.partner[k] + 1 if k in self.partner and text in ("(", "[", "{", "<") else k + 1
        return k

    def ends(self, k, ends):
        token = self.tokens[k]
        if token.text not in ends:
            return False
        return token.spaced or token.kind == "word" or token.text in (",", ";", ":", "?", "return")

    def heads(self):
        """The conditions of if, while and for."""
        for i, token in enumerate(self.tokens):
            if token.kind != "word" or token.text not in ("if", "while", "for") or i in self.untouched:
                continue
            if self.at(i + 1) != "(":
                continue  # if constexpr, if consteval
            first, last = i + 2, self.partner[i + 1]
            parts = [first]
            k = first
            while k < last:
                if self.at(k) == ";":
                    parts.append(k + 1)
                k = self.partner[k] + 1 if self.at(k) in CLOSE else k + 1
            if token.text == "for":
                if len(parts) == 3:
                    self.force(parts[1], parts[2] - 1, False, True)
                continue
            first = parts[-1]
            declared = [k for k in range(first, last) if self.at(k) == "=" and self.tokens[k].spaced
                        and self.left(k, {";"}) == first]
            if declared:
                self.nothing(declared[0] + 1, last)
            else:
                self.force(first, last, token.text == "if", True)

    def operands(self):
        """The operands of && and ||, the conditions of ?:, comparisons."""
        for i, token in enumerate(self.tokens):
            if i in self.untouched or not token.spaced:
                continue
            if token.text == "&&":
                self.force(self.left(i, ENDS_AND), i, True, False)
                self.force(i + 1, self.right(i, ENDS_AND), True, False)
            elif token.text == "||":
                self.force(self.left(i, ENDS_OR), i, False, True)
                self.force(i + 1, self.right(i, ENDS_OR), False, True)
            elif token.text == "?":
                self.force(self.left(i, ENDS_ASK), i, True, True)
        for i, token in enumerate(self.tokens):
            if i in self.untouched or not token.spaced or token.text not in COMPARE or i in self.partner:
                continue
            ends = ENDS_EQUAL if token.text in ("==", "!=") else ENDS_LESS
            first, last = self.left(i, ends), self.right(i, ends)
            self.force(first, last, True, True)
            if COMPARE[token.text]:
                self.loosen(first, i, last)

    def statements(self):
        """Calls, assignments and deletes that are statements."""
        i = 0
        while i < len(self.tokens):
            if i in self.untouched or not self.begins_statement(i):
                i += 1
                continue
            end = self.after_statement(i)
            if self.is_expression(i, end):
                self.drop(i, end)
            i += 1

    def is_block(self, brace):
        """Does the brace open statements, or an initialiser?"""
        before = self.at(brace - 1)
        return before in BEFORE_BLOCK or (before == ":" and self.is_label(brace - 1))

    def is_label(self, colon):
        return self.at(self.left(colon, {";", "{", "}"})) in ("case", "default")

    def closes_lambda(self, brace):
        k = self.partner.get(brace, 0) - 1
        while self.at(k) in ("mutable", "noexcept"):
            k -= 1
        if self.at(k) == ")":
            k = self.partner.get(k, 0) - 1
        return self.at(k) == "]"

    def begins_statement(self, i):
        if self.tokens[i].kind != "word" and self.at(i) not in ("(", "*", "::", "++", "--"):
            return False
        before = self.at(i - 1)
        if before in ("else", "do"):
            return True
        if before == "{":
            return self.is_block(i - 1)
        if before == "}":
            return self.is_block(self.partner.get(i - 1, 0)) and not self.closes_lambda(i - 1)
        if before == ";":  # of a block, or of the head of a for
            opener = i - 1
            while opener >= 0 and self.at(opener) not in CLOSE:
                opener = self.partner.get(opener, opener)
                opener -= 1
            return self.at(opener) == "{"
        if before == ")" and i - 1 in self.partner:
            head = self.partner[i - 1] - 1
            return self.at(head) in ("if", "for", "while", "switch", "constexpr")
        return before == ":" and self.is_label(i - 1)

    def is_expression(self, first, end):
        if end <= first or end >= len(self.tokens) or self.tokens[first].text in DECLARES:
            return False
        if UNTOUCHED.match(self.at(first)) or self.at(first) in (";", "{", "}"):
            return False
        if self.at(first) == "delete":
            return True
        assigns, k, previous = False, first, None
        while k < end:
            token = self.tokens[k]
            if previous is not None and token.kind == "word" and previous.kind in ("word", "number"):
                return False  # two words: a declaration
            if previous is not None and token.kind == "word" and k > first + 1 and not assigns:
                glued = previous.begin == self.tokens[k - 2].end and previous.end < token.begin
                if previous.text in ("*", "&", "&&", ">") and glued:
                    return False  # `type* name`
            if token.text == "{" and not assigns:
                return False  # a block, or `type name{...}`
            assigns = assigns or (token.text in ASSIGN and token.spaced) or token.text in ("++", "--")
            if k in self.partner and token.text in ("(", "[", "{", "<"):
                k = self.partner[k]
                token = self.tokens[k]
            previous = token
            k += 1
        # An atomic's plain store is left to the checker, which skips it.
        return assigns or (previous.text == ")" and self.at(self.partner[end - 1] - 1) != "store")

    def rewrite(self):
        self.heads()
        self.operands()
        self.statements()
        inserts = collections.defaultdict(lambda: ([], []))  # position: what closes, what opens
        cut = {}
        for order, (begin, end, before, after, comma) in enumerate(self.edits):
            inserts[begin][1].append((begin - end, order, before))
            inserts[end][0].append((end - begin, -order, after))
            if comma is not None:
                cut[comma.begin] = comma.end
        out, last = [], 0
        for position in sorted(set(inserts) | set(cut)):
            out.append(self.text[last:position])
            last = position
            closing, opening = inserts[position] if position in inserts else ([], [])
            out += [text for *_, text in sorted(closing) + sorted(opening)]
            if position in cut:
                out.append(",")
                last = cut[position]
        out.append(self.text[last:])
        return "".join(out)


def rewrite(text, next_number=1):
    """The text with its mutants in it, and what they are."""
    rewriter = Rewriter(text, next_number)
    changed = rewriter.rewrite()
    return changed, rewriter.mutants


# A file's numbers begin at a multiple of this, so that an edit seldom changes those of the files behind.
STEP = 128

# What is not mutated: the checker stands in for it, or no protocol is in it.
LEFT_OUT = re.compile(r"_(test|model|bench|fuzz)\.cpp$|_fixture\.hpp$|^src/fiber/|"
                      r"^src/base/(assert|atomic|clock|futex|perturb)\.")


def write_tree(root, tree):
    """Makes `tree` the project with mutants in its sources: {number: (path, Mutant)}.

    Files that have not changed keep their time, so that a build of the tree builds what has changed.
    """
    found, number = {}, 1
    (tree / "src").mkdir(parents=True, exist_ok=True)
    for name in ("CMakeLists.txt", "cmake", "include", "model", "tests", "tools", "README.md"):
        if not (tree / name).is_symlink():
            (tree / name).symlink_to(root / name)
    wanted = set()
    for path in sorted((root / "src").rglob("*")):
        name = path.relative_to(root).as_posix()
        if not path.is_file():
            continue
        wanted.add(tree / name)
        if path.suffix in (".cpp", ".hpp") and not LEFT_OUT.search(name):
            text, mutants = rewrite(path.read_text(), number)
            found.update((m.number, (name, m)) for m in mutants)
            number += -(-len(mutants) // STEP) * STEP
            text = f'#line 1 "{path}"\n{text}'
        elif path.suffix in (".cpp", ".hpp", ".S", ".txt"):
            text = path.read_text()
            if path.suffix != ".txt":
                text = f'#line 1 "{path}"\n{text}'
        else:
            continue
        target = tree / name
        if not target.exists() or target.read_text() != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
    for path in (tree / "src").rglob("*"):
        if path.is_file() and path not in wanted:
            path.unlink()
    return found
