"""LLVM IR of a jitted call whose arguments are arrays; see `records`, which makes what it reads.

The words of a record: the numbers of arguments, of containers that must be empty, of names that
must stand for an object, of closed-over nodes, of fixed addresses, of buffers to make, of results;
where the addresses of leaves begin among the bases of the table (see `launch`); mode of the launch;
what makes the result of several arrays (0: there is one, 1: a tuple); table, team and helpers. Then
each of these in turn: containers; dictionaries, names and objects; nodes; types of the arguments;
addresses; blocks, bytes and class of each buffer; which buffer a result has, and its type.

Objects that a record names live as long as it, and it is held while it is in use: a collection, or
another thread while a kernel runs, may put others in its place. Buffers that are read are held for
the same reason.
"""

from __future__ import annotations

from accnp.runtime import slots

__all__ = ["CALL", "TEXT"]

CALL = "accnp_call"

_word = slots.WORDS.index

TEXT = f"""
; The result of a call by a record; null if it does not fit, or with an error.
define internal i8* @by(i64* %words, i8** %args) {{
start:
  %p = alloca i64*
  %h = alloca i64
  store i64 0, i64* %h
  store i64* %words, i64** %p
  %n = call i64 @next(i64** %p)
  %empties = call i64 @next(i64** %p)
  %names = call i64 @next(i64** %p)
  %closed = call i64 @next(i64** %p)
  %fixed = call i64 @next(i64** %p)
  %fresh = call i64 @next(i64** %p)
  %results = call i64 @next(i64** %p)
  %first = call i64 @next(i64** %p)
  %mode = call i64 @next(i64** %p)
  %several = call i64 @next(i64** %p)
  %table = call i64 @next(i64** %p)
  %team = call i64 @next(i64** %p)
  %helpers = call i64 @next(i64** %p)
  %leaves = add i64 %n, %closed
  %owned = add i64 %leaves, %fresh
  %held = alloca i8*, i64 %owned
  %all = add i64 %owned, %fixed
  %bases = add i64 %all, %first
  %spare = add i64 %bases, 4
  %base = alloca i64, i64 %spare
  %base1 = getelementptr i64, i64* %base, i64 1
  store i64 %table, i64* %base1
  %base2 = getelementptr i64, i64* %base, i64 2
  store i64 %team, i64* %base2
  %base3 = getelementptr i64, i64* %base, i64 3
  store i64 %helpers, i64* %base3
  %usual = call i1 @usual(i64** %p, i64 %empties, i64 %names)
  br i1 %usual, label %argument, label %no
argument:
  %i = phi i64 [0, %start], [%i1, %hold]
  %i_more = icmp slt i64 %i, %leaves
  br i1 %i_more, label %leaf, label %room
leaf:
  %given = icmp sge i64 %i, %closed
  br i1 %given, label %is_array, label %closed_over
is_array:
  %place = sub i64 %i, %closed
  %ap = getelementptr i8*, i8** %args, i64 %place
  %x = load i8*, i8** %ap
  %good = call i1 @is_a(i8* %x, i64 {_word("array")})
  br i1 %good, label %typed, label %no
typed:
  %own = call i8* @get(i8* %x, i64 {_word("node_of")})
  %bare = icmp eq i8* %own, null
  br i1 %bare, label %no, label %is_typed
is_typed:
  %aval = call i8* @get(i8* %own, i64 {_word("aval")})
  %aval_wanted = call i8* @next_object(i64** %p)
  %fits = icmp eq i8* %aval, %aval_wanted
  br i1 %fits, label %ready, label %no
closed_over:
  %other = call i8* @next_object(i64** %p)
  br label %ready
ready:
  %node = phi i8* [%own, %is_typed], [%other, %closed_over]
  %value = call i8* @value_of(i8* %node)
  %late = icmp eq i8* %value, null
  br i1 %late, label %no, label %hold
hold:
  call void @Py_IncRef(i8* %value)
  %hp = getelementptr i8*, i8** %held, i64 %i
  store i8* %value, i8** %hp
  %i1 = add i64 %i, 1
  store i64 %i1, i64* %h
  %to = add i64 %first, %i
  %bp = getelementptr i64, i64* %base, i64 %to
  %address = call i64 @address(i8* %value)
  store i64 %address, i64* %bp
  br label %argument
room:
  %after = add i64 %first, %leaves
  %rest = getelementptr i64, i64* %base, i64 %after
  %own_held = getelementptr i8*, i8** %held, i64 %leaves
  %taken = call i64 @spaces(i64** %p, i64 %fixed, i64 %fresh, i64* %rest, i8** %own_held)
  %h_now = add i64 %leaves, %taken
  store i64 %h_now, i64* %h
  %complete = icmp eq i64 %taken, %fresh
  br i1 %complete, label %launch, label %no
launch:
  call void @launch(i64* %base, i64 %mode)
  %single = icmp eq i64 %several, 0
  br i1 %single, label %one, label %many
one:
  %which = call i64 @next(i64** %p)
  %its = call i8* @next_object(i64** %p)
  %op = getelementptr i8*, i8** %held, i64 %which
  %out = load i8*, i8** %op
  %result = call i8* @array(i8* %out, i8* %its)
  br label %release
many:
  %tuple = call i8* @PyTuple_New(i64 %results)
  %failed = icmp eq i8* %tuple, null
  br i1 %failed, label %no, label %each
each:
  %m = phi i64 [0, %many], [%m1, %set]
  %m_more = icmp slt i64 %m, %results
  br i1 %m_more, label %wrap, label %collected
wrap:
  %m_which = call i64 @next(i64** %p)
  %m_its = call i8* @next_object(i64** %p)
  %mp = getelementptr i8*, i8** %held, i64 %m_which
  %m_out = load i8*, i8** %mp
  %item = call i8* @array(i8* %m_out, i8* %m_its)
  %m_failed = icmp eq i8* %item, null
  br i1 %m_failed, label %let, label %set
let:
  call void @Py_DecRef(i8* %tuple)
  br label %no
set:
  %done = call i32 @PyTuple_SetItem(i8* %tuple, i64 %m, i8* %item)
  %m1 = add i64 %m, 1
  br label %each
collected:
  %plain = icmp eq i64 %several, 1
  br i1 %plain, label %release, label %build
build:
  %builder = inttoptr i64 %several to i8*
  %tp = alloca i8*
  store i8* %tuple, i8** %tp
  %built = call i8* @PyObject_Vectorcall(i8* %builder, i8** %tp, i64 1, i8* null)
  call void @Py_DecRef(i8* %tuple)
  br label %release
no:
  br label %release
release:
  %found = phi i8* [%result, %one], [%tuple, %collected], [%built, %build], [null, %no]
  %last = load i64, i64* %h
  call void @let_go(i8** %held, i64 %last)
  ret i8* %found
}}

define internal i8* @slowly(i8* %self, i8** %args, i64 %nargs, i8* %names) {{
  %named = icmp ne i8* %names, null
  br i1 %named, label %count, label %counted
count:
  %more = call i64 @PyTuple_Size(i8* %names)
  br label %counted
counted:
  %extra = phi i64 [0, %0], [%more, %count]
  %given = add i64 %nargs, %extra
  %room = add i64 %given, 1
  %all = alloca i8*, i64 %room
  store i8* %self, i8** %all
  br label %next
next:
  %i = phi i64 [0, %counted], [%i1, %copy]
  %left = icmp slt i64 %i, %given
  br i1 %left, label %copy, label %call
copy:
  %p = getelementptr i8*, i8** %args, i64 %i
  %x = load i8*, i8** %p
  %i1 = add i64 %i, 1
  %q = getelementptr i8*, i8** %all, i64 %i1
  store i8* %x, i8** %q
  br label %next
call:
  %positional = add i64 %nargs, 1
  %function = call i8* @object(i64 {_word("slow")})
  %result = call i8* @PyObject_Vectorcall(
    i8* %function, i8** %all, i64 %positional, i8* %names)
  ret i8* %result
}}

define i8* @{CALL}(i8* %self, i8** %args, i64 %nargs, i8* %names) {{
start:
  %fast = call i8* @get(i8* %self, i64 {_word("fast")})
  %unknown = icmp eq i8* %fast, null
  %named = icmp ne i8* %names, null
  %other = or i1 %unknown, %named
  br i1 %other, label %slow, label %look
look:
  call void @Py_IncRef(i8* %fast)
  %count = call i64 @PyTuple_Size(i8* %fast)
  br label %next
next:
  %i = phi i64 [0, %look], [%i1, %try], [%i1, %unfit]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %try, label %none
try:
  %i1 = add i64 %i, 1
  %record = call i8* @PyTuple_GetItem(i8* %fast, i64 %i)
  %bytes = call i8* @PyTuple_GetItem(i8* %record, i64 0)
  %text = call i8* @PyBytes_AsString(i8* %bytes)
  %words = bitcast i8* %text to i64*
  %n = load i64, i64* %words
  %fits = icmp eq i64 %n, %nargs
  br i1 %fits, label %run, label %next
run:
  %found = call i8* @by(i64* %words, i8** %args)
  %lacking = icmp eq i8* %found, null
  br i1 %lacking, label %unfit, label %done
unfit:
  %error = call i8* @PyErr_Occurred()
  %bad = icmp ne i8* %error, null
  br i1 %bad, label %done, label %next
done:
  call void @Py_DecRef(i8* %fast)
  ret i8* %found
none:
  call void @Py_DecRef(i8* %fast)
  br label %slow
slow:
  %result = call i8* @slowly(i8* %self, i8** %args, i64 %nargs, i8* %names)
  ret i8* %result
}}
"""
