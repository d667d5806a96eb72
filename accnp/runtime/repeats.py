"""LLVM IR that computes a pending graph of a known structure; `engine/repeated.py` makes what it
reads, and calls it with the engine's lock.

The words of a record: the numbers of nodes, of leaves, of containers that must be empty, of names
that must stand for an object, of fixed addresses, of buffers to make, of results; depth of the node
that is asked for, and the table (see `launch`). Then each of these in turn: containers;
dictionaries, names and objects; addresses; blocks, bytes and class of each buffer; for each node
its form, how it is held, how often it is an input, the number of its inputs, and these: the number
of a node, or -1 less that of a leaf; for each result which buffer it has, and which node it is of.

How a node is held: by nobody but the graph (0), by somebody (1), any way (2). One node may stand
for two of a record that are alike, and held; the second of its results is let go.

No Python code runs, and the interpreter lock is kept, from the first look at a node until all
results are where they belong: buffers are made before, and what a node held is let go after.
"""

from __future__ import annotations

from accnp.runtime.launch import ALONE
from accnp.runtime.slots import WORDS

__all__ = ["REPEAT", "TEXT"]

REPEAT = "accnp_repeat"

_word = WORDS.index

TEXT = f"""
; Whether pending nodes are as a record says; lists nodes, and addresses of leaves.
define internal i1 @alike(i64** %p, i8* %root, i64 %count, i64 %leaves, i8** %nodes, i64* %base) {{
start:
  %ends = alloca i8*, i64 %leaves
  %seen = alloca i64
  %met = alloca i64
  store i64 1, i64* %seen
  store i64 0, i64* %met
  store i8* %root, i8** %nodes
  br label %next
next:
  %i = phi i64 [0, %start], [%i1, %input]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %yes
one:
  %i1 = add i64 %i, 1
  %np = getelementptr i8*, i8** %nodes, i64 %i
  %node = load i8*, i8** %np
  %form = call i8* @get(i8* %node, i64 {_word("form")})
  %form_wanted = call i8* @next_object(i64** %p)
  %fits = icmp eq i8* %form, %form_wanted
  br i1 %fits, label %pending, label %no
pending:
  %value = call i8* @get(i8* %node, i64 {_word("value")})
  %none = icmp eq i8* %value, @_Py_NoneStruct
  br i1 %none, label %free, label %no
free:
  %trace = call i8* @get(i8* %node, i64 {_word("trace")})
  %untraced = icmp eq i8* %trace, @_Py_NoneStruct
  br i1 %untraced, label %held, label %no
held:
  %how = call i64 @next(i64** %p)
  %uses = call i64 @next(i64** %p)
  %short = bitcast i8* %node to i32*
  %references = load i32, i32* %short
  %known = zext i32 %references to i64
  %others = icmp sgt i64 %known, %uses
  %wide = zext i1 %others to i64
  %any = icmp eq i64 %how, 2
  %agrees = icmp eq i64 %how, %wide
  %either = or i1 %any, %agrees
  br i1 %either, label %inputs, label %no
inputs:
  %tuple = call i8* @get(i8* %node, i64 {_word("inputs")})
  %size = call i64 @PyTuple_Size(i8* %tuple)
  %arity = call i64 @next(i64** %p)
  %right = icmp eq i64 %size, %arity
  br i1 %right, label %input, label %no
input:
  %j = phi i64 [0, %inputs], [%j1, %is_new], [%j1, %again], [%j1, %has_value], [%j1, %same_leaf]
  %j_more = icmp slt i64 %j, %arity
  br i1 %j_more, label %look, label %next
look:
  %x = call i8* @PyTuple_GetItem(i8* %tuple, i64 %j)
  %j1 = add i64 %j, 1
  %w = call i64 @next(i64** %p)
  %is_node = icmp sge i64 %w, 0
  br i1 %is_node, label %inner, label %leaf
inner:
  %so_far = load i64, i64* %seen
  %wp = getelementptr i8*, i8** %nodes, i64 %w
  %first = icmp eq i64 %w, %so_far
  br i1 %first, label %is_new, label %again
is_new:
  store i8* %x, i8** %wp
  %seen1 = add i64 %so_far, 1
  store i64 %seen1, i64* %seen
  br label %input
again:
  %before = load i8*, i8** %wp
  %same = icmp eq i8* %before, %x
  br i1 %same, label %input, label %no
leaf:
  %l = sub i64 -1, %w
  %found = load i64, i64* %met
  %lp = getelementptr i8*, i8** %ends, i64 %l
  %fresh = icmp eq i64 %l, %found
  br i1 %fresh, label %end, label %same_leaf
same_leaf:
  %end_before = load i8*, i8** %lp
  %same_end = icmp eq i8* %end_before, %x
  br i1 %same_end, label %input, label %no
end:
  store i8* %x, i8** %lp
  %met1 = add i64 %found, 1
  store i64 %met1, i64* %met
  %buffer = call i8* @get(i8* %x, i64 {_word("value")})
  %bare = icmp eq i8* %buffer, null
  br i1 %bare, label %no, label %is_buffer
is_buffer:
  %good = call i1 @is_a(i8* %buffer, i64 {_word("buffer")})
  br i1 %good, label %has_value, label %no
has_value:
  %bp = getelementptr i64, i64* %base, i64 %l
  %address = call i64 @address(i8* %buffer)
  store i64 %address, i64* %bp
  br label %input
yes:
  ret i1 true
no:
  ret i1 false
}}

; Whether a node was computed by a record.
define internal i1 @once(i64* %words, i8* %root) {{
start:
  %p = alloca i64*
  store i64* %words, i64** %p
  %count = call i64 @next(i64** %p)
  %leaves = call i64 @next(i64** %p)
  %empties = call i64 @next(i64** %p)
  %names = call i64 @next(i64** %p)
  %fixed = call i64 @next(i64** %p)
  %fresh = call i64 @next(i64** %p)
  %results = call i64 @next(i64** %p)
  %deep = call i8* @next_object(i64** %p)
  %table = call i64 @next(i64** %p)
  %depth = call i8* @get(i8* %root, i64 {_word("depth")})
  %as_deep = icmp eq i8* %depth, %deep
  br i1 %as_deep, label %ask, label %no
ask:
  %usual = call i1 @usual(i64** %p, i64 %empties, i64 %names)
  br i1 %usual, label %room, label %no
room:
  %held = alloca i8*, i64 %fresh
  %nodes = alloca i8*, i64 %count
  %olds = alloca i8*, i64 %results
  %known = add i64 %leaves, 2
  %more = add i64 %known, %fixed
  %all = add i64 %more, %fresh
  %base = alloca i64, i64 %all
  %base1 = getelementptr i64, i64* %base, i64 1
  store i64 %table, i64* %base1
  %base2 = getelementptr i64, i64* %base, i64 2
  %rest = getelementptr i64, i64* %base, i64 %known
  %taken = call i64 @spaces(i64** %p, i64 %fixed, i64 %fresh, i64* %rest, i8** %held)
  %complete = icmp eq i64 %taken, %fresh
  br i1 %complete, label %match, label %drop
match:
  %fits = call i1 @alike(
    i64** %p, i8* %root, i64 %count, i64 %leaves, i8** %nodes, i64* %base2)
  br i1 %fits, label %run, label %drop
run:
  call void @launch(i64* %base, i64 {ALONE})
  br label %result
result:
  %r = phi i64 [0, %run], [%r1, %give], [%r1, %given]
  %r_more = icmp slt i64 %r, %results
  br i1 %r_more, label %deliver, label %free
deliver:
  %which = call i64 @next(i64** %p)
  %whose = call i64 @next(i64** %p)
  %hp = getelementptr i8*, i8** %held, i64 %which
  %buffer = load i8*, i8** %hp
  %np = getelementptr i8*, i8** %nodes, i64 %whose
  %node = load i8*, i8** %np
  %op = getelementptr i8*, i8** %olds, i64 %r
  %r1 = add i64 %r, 1
  %now = call i8* @get(i8* %node, i64 {_word("value")})
  %lacking = icmp eq i8* %now, @_Py_NoneStruct
  br i1 %lacking, label %give, label %given
given:
  store i8* null, i8** %op
  br label %result
give:
  %old = call i8* @get(i8* %node, i64 {_word("inputs")})
  store i8* %old, i8** %op
  call void @put(i8* %node, i64 {_word("value")}, i8* %buffer)
  %nothing = call i8* @object(i64 {_word("nothing")})
  call void @put(i8* %node, i64 {_word("inputs")}, i8* %nothing)
  %was_deep = call i8* @get(i8* %node, i64 {_word("depth")})
  %zero = call i8* @object(i64 {_word("zero")})
  call void @put(i8* %node, i64 {_word("depth")}, i8* %zero)
  call void @Py_DecRef(i8* %was_deep)
  call void @Py_DecRef(i8* @_Py_NoneStruct)
  br label %result
free:
  call void @let_go(i8** %olds, i64 %results)
  br label %drop
drop:
  %served = phi i1 [false, %room], [false, %match], [true, %free]
  call void @let_go(i8** %held, i64 %taken)
  ret i1 %served
no:
  ret i1 false
}}

; f(records, node): whether the node was computed.
define i8* @{REPEAT}(i8* %self, i8** %args, i64 %nargs) {{
start:
  %records = load i8*, i8** %args
  %ap = getelementptr i8*, i8** %args, i64 1
  %root = load i8*, i8** %ap
  %count = call i64 @PyTuple_Size(i8* %records)
  br label %next
next:
  %i = phi i64 [0, %start], [%i1, %unfit]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %try, label %none
try:
  %i1 = add i64 %i, 1
  %record = call i8* @PyTuple_GetItem(i8* %records, i64 %i)
  %bytes = call i8* @PyTuple_GetItem(i8* %record, i64 0)
  %text = call i8* @PyBytes_AsString(i8* %bytes)
  %words = bitcast i8* %text to i64*
  %served = call i1 @once(i64* %words, i8* %root)
  br i1 %served, label %done, label %unfit
unfit:
  %error = call i8* @PyErr_Occurred()
  %bad = icmp ne i8* %error, null
  br i1 %bad, label %failed, label %next
done:
  call void @Py_IncRef(i8* @_Py_TrueStruct)
  ret i8* @_Py_TrueStruct
none:
  call void @Py_IncRef(i8* @_Py_FalseStruct)
  ret i8* @_Py_FalseStruct
failed:
  ret i8* null
}}
"""
